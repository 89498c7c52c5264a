import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cpuOf, totalOf } from '../lab/meters/cpu.ts';
import { mostMemory } from '../lab/meters/memory.ts';
import { startBare } from './bare.ts';
import { isFair } from './fair.ts';
import { brokenBy, GOAL, LIMITS, verdictOn } from './limits.ts';
import { run } from './load.ts';
import { plot } from './plot.ts';
import { startProbes } from './probes.ts';
import { type Load, startStage } from './stage.ts';
import { goodputOf, type Row, shareOf, tableHead, tableLine, totalsOf } from './table.ts';

/**
 * Loads the built host with several times what it can answer, whatever becomes of the answers; prints a table of what was
 * answered in time, which limits were kept, and at last the totals as JSON; writes the same as a plot. Ends with exit code
 * 1 when a limit that decides was not kept.
 */
const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    factors: { type: 'string', default: '1,2,5,10' },
    /** By default 300 and 2,000; with `--fair` 20, 200 and 2,000. */
    connections: { type: 'string' },
    /** The file of the plot. */
    plot: { type: 'string', default: join(tmpdir(), 'user-management-overload.svg') },
    /** A command that runs the service, such as `taskset -c 0`. */
    'run-by': { type: 'string', default: '' },
    /** What callers send: `reads-and-updates` or `batches`. */
    load: { type: 'string', default: 'reads-and-updates' },
    /** Ten callers, nine of which send little, and results per caller. */
    fair: { type: 'boolean', default: false },
    /** Loads a bare node:http server in place of the service. */
    bare: { type: 'boolean', default: false },
    /** A setting of the service, `SVC_POSTGRES_POOL_SIZE=4`; may be repeated. */
    set: { type: 'string', multiple: true, default: [] },
  },
});

const USERS = 2000;
const seconds = Number(options.seconds);
const variables = Object.fromEntries(options.set.map((setting) => setting.split(/=(.*)/s, 2)));
const stage = options.bare
  ? await startBare()
  : await startStage(USERS, options.load as Load, variables, options['run-by'].split(' ').filter(Boolean));
const { url, requests } = stage;
const port = Number(new URL(url).port);

/** One after the other from each connection. */
const steady = { port, requests, connections: 64, rate: 0 };

try {
  process.exitCode = (await (options.fair ? areTurnsFair() : areLimitsKept())) ? 0 : 1;
} finally {
  await stage.stop();
}

async function areTurnsFair(): Promise<boolean> {
  await run({ ...steady, seconds: 3 });
  const { plot: file, connections = '20,200,2000' } = options;
  return isFair({ stage, connections: numbersOf(connections), seconds, plot: file, measurePeak, print });
}

async function areLimitsKept(): Promise<boolean> {
  // These warm up.
  await run({ ...steady, seconds: 3 });

  print(tableHead());
  const rows: Row[] = [];
  let peak = await measurePeak();
  for (const connections of numbersOf(options.connections ?? '300,2000')) {
    for (const factor of numbersOf(options.factors)) {
      const loaded = await load(connections, factor, peak);
      // The pace of a machine may change from one minute to the next.
      const next = await measurePeak();
      const row = { ...loaded, peak: (peak + next) / 2 };
      peak = next;
      rows.push(row);
      print(tableLine(row));
    }
  }

  const points = rows.map((row) => ({
    connections: row.connections,
    offered: row.outcome.due / row.outcome.seconds / row.peak,
    goodput: shareOf(row),
    refused: row.outcome.refused / row.outcome.seconds / row.peak,
  }));
  await writeFile(options.plot, plot(GOAL, points));
  const lines = stage.events('requests_refused').length;
  print(
    `\nThe plot is in ${options.plot}; ${lines} lines requests_refused, ${Math.round(mostMemory(stage.processId))} MB at most.`,
  );

  for (const limit of LIMITS) print(verdictOn(limit, rows));
  const isAlive = stage.isAlive();
  if (!isAlive) print('FAILED: The process has ended.');
  print(JSON.stringify(totalsOf(rows)));
  return isAlive && LIMITS.every((limit) => !limit.decides || brokenBy(limit, rows).length === 0);
}

/** Requests a second, as many as there can be. */
async function measurePeak(): Promise<number> {
  return goodputOf(await run({ ...steady, seconds: Math.min(Math.max(seconds / 4, 5), 15) }));
}

async function load(connections: number, factor: number, peak: number): Promise<Omit<Row, 'peak'>> {
  const probes = startProbes(url);
  const cpuBefore = totalOf(cpuOf(stage.processId));
  const outcome = await run({ port, requests, connections, rate: Math.round(factor * peak), seconds });
  const cpu = (totalOf(cpuOf(stage.processId)) - cpuBefore) / outcome.seconds;
  const probed = await probes.stop();
  await sleep(2000);
  const after = await run({ ...steady, connections: 1, seconds: 0.5 });
  const isNormalAfter = after.sent > 0 && after.answered === after.sent;
  return { connections, factor, outcome, probes: probed, cpu, isNormalAfter };
}

function numbersOf(list: string): readonly number[] {
  return list.split(',').map(Number);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
