import { setTimeout as sleep } from 'node:timers/promises';
import { isFair } from '../../overload/fair.ts';
import { brokenBy, LIMITS, verdictOn } from '../../overload/limits.ts';
import { startProbes } from '../../overload/probes.ts';
import { type Requests, startLoadedService } from '../../overload/service.ts';
import { goodputOf, loadsOf, type Row, shareOf, TABLE } from '../../overload/table.ts';
import { defineExperiment, numberIn } from '../experiment.ts';
import { type Job, type Outcome, PATIENCE_MS, runLoads } from '../load/load.ts';
import { cpuOf } from '../meters/cpu.ts';
import { mostMemory } from '../meters/memory.ts';

/**
 * Loads the built host with several times what it can serve. Prints a table of what was answered in time, which limits
 * were kept.
 */
export const experiment = defineExperiment({
  promise: 'With up to 10 times its capacity, the service continues to serve at 80 % of its peak or more.',
  takes: '15 minutes',
  needs: 'Linux and a quiet machine',
  options: {
    /** Of each load; by default 10, with `--fair` 30. */
    seconds: { type: 'string' },
    factors: { type: 'string', default: '1,2,5,10' },
    /** By default 300 and 2,000; with `--fair` 20, 200 and 2,000. */
    connections: { type: 'string' },
    /** A command that runs the service, such as `taskset -c 0`. */
    'run-by': { type: 'string', default: '' },
    /** What callers send: `reads-and-updates` or `batches`. */
    load: { type: 'string', default: 'reads-and-updates' },
    /** Ten callers, nine of which send little, and results per caller. */
    fair: { type: 'boolean', default: false },
    /** How often each load is made; by default 6 times, with `--fair` once. All rounds together decide, or their medians. */
    rounds: { type: 'string' },
    /** A setting of the service, `SVC_POSTGRES_POOL_SIZE=4`; may be repeated. */
    set: { type: 'string', multiple: true, default: [] },
  },
  async run({ options, print, printRow, openStage }) {
    const seconds = numberIn('seconds', options.seconds ?? (options.fair ? '30' : '10'));
    const rounds = numberIn('rounds', options.rounds ?? (options.fair ? '1' : '6'));
    const stage = await openStage({
      ...{ seed: 1, trials: 1 },
      postgres: { settings: { synchronous_commit: 'off' } },
    });
    const variables = Object.fromEntries(options.set.map((setting) => setting.split(/=(.*)/s, 2)));
    const runBy = options['run-by'].split(' ').filter(Boolean);
    const service = await startLoadedService(stage, options.load as Requests, variables, runBy);
    const { url, processId } = service;
    /** Impatient callers; without a rate, each connection sends one request after the other. */
    const job = {
      ...{ port: Number(new URL(url).port), requests: { list: service.requests } },
      ...{ connections: 64, patienceMs: PATIENCE_MS },
    };
    // These warm up.
    await runLoad({ ...job, seconds: 3 });
    if (!options.fair) return areLimitsKept();
    const connections = numbersOf(options.connections ?? '20,200,2000');
    return isFair({ service, connections, seconds, rounds, measurePeak, print, printRow });

    async function areLimitsKept(): Promise<boolean> {
      print(TABLE.head);
      const rows: Row[] = [];
      let peak = await measurePeak();
      const each = numbersOf(options.connections ?? '300,2000');
      for (const connections of Array.from({ length: rounds }, () => each).flat()) {
        for (const factor of numbersOf(options.factors)) {
          const loaded = await load({ ...job, connections, rate: Math.round(factor * peak), seconds });
          // The pace of a machine may change from one second to the next.
          const next = await measurePeak();
          const row = { connections, factor, ...loaded, peak: (peak + next) / 2 };
          peak = next;
          rows.push(row);
          print(TABLE.line(row));
        }
      }
      print(`\n${Math.round(mostMemory(processId))} MB at most.`);
      for (const limit of LIMITS) print(verdictOn(limit, rows));
      const shares = each.map((count) => loadsOf(rows.filter(({ connections }) => connections === count)));
      const figures = shares.map(
        (loads, index) =>
          `${each[index]}: ${loads.map((load) => Math.round(100 * shareOf(load))).join(', ')} %`,
      );
      printRow(figures.join('; '), '80 % of the peak');
      const isAlive = service.isAlive();
      if (!isAlive) print('FAILED: The process has ended.');
      return isAlive && LIMITS.every((limit) => !limit.decides || brokenBy(limit, rows).length === 0);
    }

    /** Requests a second, as many as there can be. */
    async function measurePeak(): Promise<number> {
      return goodputOf(await runLoad({ ...job, seconds: Math.min(Math.max(seconds / 4, 5), 15) }));
    }

    async function load(overload: Job) {
      const probes = startProbes(url);
      const cpuBefore = cpuOf(processId);
      const outcome = await runLoad(overload);
      const cpu = (cpuOf(processId) - cpuBefore) / outcome.seconds;
      const probed = await probes.stop();
      await sleep(2000);
      const after = await runLoad({ ...job, connections: 1, seconds: 0.5 });
      const isNormalAfter = after.sent > 0 && after.answered === after.sent;
      return { outcome, probes: probed, cpu, isNormalAfter };
    }
  },
});

async function runLoad(job: Job): Promise<Outcome> {
  const [outcome] = await runLoads(job);
  return outcome as Outcome;
}

function numbersOf(list: string): readonly number[] {
  return list.split(',').map((number) => numberIn('connections', number));
}
