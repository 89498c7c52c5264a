import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cpuOf } from '../benchmark/meters/cpu.ts';
import { mostMemory } from '../benchmark/meters/memory.ts';
import { startBare } from './bare.ts';
import { run } from './load.ts';
import { plot } from './plot.ts';
import { startProbes } from './probes.ts';
import { startStage } from './stage.ts';
import { goodputOf, type Row, tableHead, tableLine } from './table.ts';

/**
 * Loads the built host with several times what it can answer, whatever becomes of the answers; prints a table of what was
 * answered in time, and writes the same as a plot. Ends with exit code 1 when less than the goal was.
 */
const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    factors: { type: 'string', default: '1,2,5,10' },
    connections: { type: 'string', default: '300,2000' },
    /** The file of the plot. */
    plot: { type: 'string', default: join(tmpdir(), 'user-management-overload.svg') },
    /** A command that runs the service, such as `taskset -c 0`. */
    'run-by': { type: 'string', default: '' },
    /** Loads a bare node:http server in place of the service. */
    bare: { type: 'boolean', default: false },
    /** A setting of the service, `SVC_POSTGRES_POOL_SIZE=4`; may be repeated. */
    set: { type: 'string', multiple: true, default: [] },
  },
});

/** Of the peak. */
const GOAL = 0.8;

const USERS = 2000;
const seconds = Number(options.seconds);
const variables = Object.fromEntries(options.set.map((setting) => setting.split('=', 2)));
const stage = options.bare
  ? await startBare()
  : await startStage(USERS, variables, options['run-by'].split(' ').filter(Boolean));
const { url, requests } = stage;
const port = Number(new URL(url).port);

/** One after the other from each connection. */
const steady = { port, requests, connections: 64, rate: 0 };

try {
  process.exitCode = (await isGoalReached()) ? 0 : 1;
} finally {
  await stage.stop();
}

async function isGoalReached(): Promise<boolean> {
  // These warm up.
  await run({ ...steady, seconds: 3 });
  const peak = await run({ ...steady, seconds: Math.min(Math.max(seconds / 3, 5), 20) });
  const capacity = Math.round(goodputOf(peak));
  print(`The peak: ${capacity} requests a second from ${steady.connections} connections.\n`);

  print(tableHead());
  const rows: Row[] = [];
  for (const connections of numbersOf(options.connections)) {
    for (const factor of numbersOf(options.factors)) {
      const row = await measure(connections, factor, capacity);
      rows.push(row);
      print(tableLine(row, capacity));
    }
  }

  const points = rows.map(({ connections, outcome }) => ({
    connections,
    offered: outcome.due / outcome.seconds,
    goodput: goodputOf(outcome),
    refused: outcome.refused / outcome.seconds,
  }));
  await writeFile(options.plot, plot(capacity, GOAL * capacity, points));
  const lines = stage.events('requests_refused').length;
  print(
    `\nThe plot is in ${options.plot}; ${lines} lines requests_refused, ${Math.round(mostMemory(stage.processId))} MB at most.`,
  );

  const isGood = stage.isAlive() && rows.every(({ outcome }) => goodputOf(outcome) >= GOAL * capacity);
  print(`Goodput ${isGood ? 'is' : 'IS NOT'} at least ${100 * GOAL} % of the peak at every load.`);
  return isGood;
}

async function measure(connections: number, factor: number, capacity: number): Promise<Row> {
  const probes = startProbes(url);
  const cpuBefore = cpuOf(stage.processId);
  const outcome = await run({ port, requests, connections, rate: factor * capacity, seconds });
  const cpuAfter = cpuOf(stage.processId);
  const used = cpuAfter.user + cpuAfter.system - cpuBefore.user - cpuBefore.system;
  const cpu = used / outcome.seconds;
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
