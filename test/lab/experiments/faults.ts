import { randomInt } from 'node:crypto';
import { endRow, runApart } from '../../faults/run-apart.ts';
import type { Outcome } from '../../faults/run-row.ts';
import { defineExperiment, numberIn } from '../experiment.ts';

/** `Row.brief` is the number of trials in a run of so many minutes. */
const BRIEF_MINUTES = 5;

/**
 * Causes every fault of the list against the built host. Prints a line of JSON per row, and at last `N passed, N failed`.
 * Each row is a process of its own, so that none can end or delay the run. `--row <name>` runs one,
 * `--seed <n>` repeats an earlier run, `--minutes 5` makes fewer trials.
 */
export const experiment = defineExperiment({
  promise: 'Whatever fails around the service, each row keeps its promise.',
  takes: 'an hour, or what --minutes 5 names',
  needs: 'Linux, root, haproxy and nginx',
  options: {
    row: { type: 'string', multiple: true },
    seed: { type: 'string', default: String(randomInt(1_000_000)) },
    minutes: { type: 'string' },
    trials: { type: 'string' },
    list: { type: 'boolean' },
  },
  async run({ options, print, printRow, defer }) {
    const { rows } = await import('../../faults/rows/index.ts');
    const seed = numberIn('seed', options.seed);
    const minutes = options.minutes ? numberIn('minutes', options.minutes) : Number.POSITIVE_INFINITY;
    const trials = options.trials && numberIn('trials', options.trials);
    const unknown = options.row?.find((name) => rows.every((row) => row.name !== name));
    if (unknown) throw new Error(`there is no row ${unknown}: ${rows.map(({ name }) => name).join(', ')}`);
    const isShort = options.minutes !== undefined && !options.row;
    const chosen = rows.filter(({ name }) => options.row?.includes(name) ?? true);
    if (options.list) {
      for (const { name, promise } of chosen) print(`${name.padEnd(30)} ${promise}`);
      return true;
    }

    defer(endRow);
    print(JSON.stringify({ seed, rows: chosen.length }));
    const outcomes: Outcome[] = [];
    const leftOut = chosen.filter(({ brief }) => isShort && brief === undefined);
    const begun = performance.now();
    for (const row of chosen) {
      if (leftOut.includes(row)) continue;
      const { brief = Number.POSITIVE_INFINITY } = row;
      const fitting = Math.max(1, Math.round((brief * minutes) / BRIEF_MINUTES));
      const order = { seed, trials: trials || Math.min(row.trials, fitting) };
      let outcome = await runApart(row, order);
      // A machine that stands still for a second exceeds a limit. What fails twice is a defect.
      if (!outcome.passed && isShort) {
        print(`tried again: ${row.name}: ${outcome.faults[0]}`);
        outcome = await runApart(row, order);
      }
      outcomes.push(outcome);
      print(JSON.stringify(outcome));
    }

    for (const { row, faults } of outcomes) for (const fault of faults) print(`failed: ${row}: ${fault}`);
    const passed = outcomes.filter((outcome) => outcome.passed).length;
    if (leftOut.length > 0) print(`left to the whole run: ${leftOut.map(({ name }) => name).join(', ')}`);
    print(`seed ${seed}, ${((performance.now() - begun) / 60_000).toFixed(1)} minutes`);
    const counts = `${passed} passed, ${outcomes.length - passed} failed`;
    printRow(counts, '0 failed');
    print(counts);
    return passed === outcomes.length && passed > 0;
  },
});
