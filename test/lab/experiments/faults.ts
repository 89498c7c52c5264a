import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { rows } from '../../faults/rows/index.ts';
import { endRow, runApart } from '../../faults/run-apart.ts';
import type { Outcome, Row } from '../../faults/run-row.ts';

/**
 * Brings about every fault of the list against the built host. Prints a line of JSON a row, then a table, and at last
 * `N passed, N failed`. Each row is a process of its own, so that none can end or hold up the run. `--row <name>` runs one,
 * `--seed <n>` runs as an earlier time did, `--minutes 5` runs what fits.
 */
const BRIEF_MINUTES = 5;

const { values } = parseArgs({
  options: {
    row: { type: 'string', multiple: true },
    seed: { type: 'string' },
    minutes: { type: 'string' },
    trials: { type: 'string' },
    list: { type: 'boolean' },
  },
});
const seed = Number(values.seed ?? randomInt(1_000_000));
const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
if (![seed, minutes ?? 1, Number(values.trials ?? 1)].every(Number.isFinite)) {
  throw new Error('--seed, --minutes and --trials take a number');
}

const unknown = values.row?.find((name) => rows.every((row) => row.name !== name));
if (unknown) throw new Error(`there is no row ${unknown}: ${rows.map(({ name }) => name).join(', ')}`);
const isShort = minutes !== undefined && !values.row;
const asked = rows.filter(({ name }) => values.row?.includes(name) ?? true);
const chosen = isShort ? asked.filter(({ brief }) => brief !== undefined) : asked;
const leftToTheWholeRun = asked.filter((row) => !chosen.includes(row)).map(({ name }) => name);

/** In a run that is not whole, as many as fit. */
function trialsOf({ trials, brief }: Row): number {
  if (values.trials) return Number(values.trials);
  if (minutes === undefined || brief === undefined) return trials;
  return Math.max(1, Math.min(trials, Math.round((brief * minutes) / BRIEF_MINUTES)));
}

const print = (text: string) => process.stdout.write(`${text}\n`);

if (values.list) {
  for (const { name, promise } of chosen) print(`${name.padEnd(30)} ${promise}`);
  process.exit();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void endRow().finally(() => process.exit(1)));
}

print(JSON.stringify({ seed, rows: chosen.length }));
const outcomes: Outcome[] = [];
const leftOut: string[] = [];
const end = performance.now() + (isShort ? minutes * 60_000 : Number.POSITIVE_INFINITY);
for (const row of chosen) {
  if (performance.now() > end) {
    leftOut.push(row.name);
    continue;
  }
  let outcome = await runApart(row, { seed, trials: trialsOf(row) });
  // A machine that stands still for a second breaks a limit of ours. What fails twice is a defect.
  if (!outcome.passed && isShort) {
    print(`tried again: ${row.name}: ${outcome.faults[0]}`);
    outcome = await runApart(row, { seed, trials: trialsOf(row) });
  }
  outcomes.push(outcome);
  print(JSON.stringify(outcome));
}

print(`\n${'row'.padEnd(30)} trials    sent      ok  doubt  lost  recovery  longest  seconds`);
for (const outcome of outcomes) {
  const figures = [
    String(outcome.trials).padStart(6),
    String(outcome.sent).padStart(7),
    String(outcome.ok).padStart(7),
    String(outcome.in_doubt).padStart(6),
    String(outcome.lost).padStart(5),
    `${outcome.recovery_seconds} s`.padStart(9),
    `${outcome.longest_answer_ms} ms`.padStart(8),
    String(outcome.seconds).padStart(8),
  ].join(' ');
  print(`${outcome.row.padEnd(30)} ${figures} ${outcome.passed ? '' : ' FAILED'}`);
}
for (const { row, faults } of outcomes) for (const fault of faults) print(`failed: ${row}: ${fault}`);
const passed = outcomes.filter((outcome) => outcome.passed).length;
if (leftToTheWholeRun.length > 0) print(`left to the whole run: ${leftToTheWholeRun.join(', ')}`);
if (leftOut.length > 0) print(`left out, for the time was up: ${leftOut.join(', ')}`);
const minutesTaken = outcomes.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
print(`seed ${seed}, ${minutesTaken.toFixed(1)} minutes`);
print(`${passed} passed, ${outcomes.length - passed} failed`);
process.exit(passed === outcomes.length && passed > 0 ? 0 : 1);
