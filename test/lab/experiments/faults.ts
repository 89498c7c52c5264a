import { randomInt } from 'node:crypto';
import { endRow, runApart } from '../../faults/run-apart.ts';
import type { Outcome, Row } from '../../faults/run-row.ts';
import { defineExperiment, numberIn } from '../experiment.ts';
import { tableOf } from '../report/table.ts';

/** `Row.brief` is the number of trials in a run of so many minutes. */
const BRIEF_MINUTES = 5;

/**
 * Causes every fault of the list against the built host. Prints a line of JSON per row, then a table, and at last
 * `N passed, N failed`. Each row is a process of its own, so that none can end or delay the run. `--row <name>` runs one,
 * `--seed <n>` repeats an earlier run, `--minutes 5` runs what fits.
 */
export const experiment = defineExperiment({
  name: 'faults',
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
  async run({ options, print, defer }) {
    const { rows } = await import('../../faults/rows/index.ts');
    const seed = numberIn('seed', options.seed);
    const minutes = options.minutes === undefined ? undefined : numberIn('minutes', options.minutes);
    const trials = options.trials === undefined ? undefined : numberIn('trials', options.trials);
    const unknown = options.row?.find((name) => rows.every((row) => row.name !== name));
    if (unknown) throw new Error(`there is no row ${unknown}: ${rows.map(({ name }) => name).join(', ')}`);
    const isShort = minutes !== undefined && !options.row;
    const asked = rows.filter(({ name }) => options.row?.includes(name) ?? true);
    const chosen = isShort ? asked.filter(({ brief }) => brief !== undefined) : asked;
    const leftToTheWholeRun = asked.filter((row) => !chosen.includes(row)).map(({ name }) => name);
    if (options.list) {
      for (const { name, promise } of chosen) print(`${name.padEnd(30)} ${promise}`);
      return true;
    }

    /** In a run that is not whole, as many as fit. */
    function trialsOf({ trials: all, brief }: Row): number {
      if (trials) return trials;
      if (minutes === undefined || brief === undefined) return all;
      return Math.max(1, Math.min(all, Math.round((brief * minutes) / BRIEF_MINUTES)));
    }

    defer(endRow);
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
      // A machine that stands still for a second exceeds a limit. What fails twice is a defect.
      if (!outcome.passed && isShort) {
        print(`tried again: ${row.name}: ${outcome.faults[0]}`);
        outcome = await runApart(row, { seed, trials: trialsOf(row) });
      }
      outcomes.push(outcome);
      print(JSON.stringify(outcome));
    }

    print(`\n${tableOf(COLUMNS, outcomes)}`);
    for (const { row, faults } of outcomes) for (const fault of faults) print(`failed: ${row}: ${fault}`);
    const passed = outcomes.filter((outcome) => outcome.passed).length;
    if (leftToTheWholeRun.length > 0) print(`left to the whole run: ${leftToTheWholeRun.join(', ')}`);
    if (leftOut.length > 0) print(`left out, because the time was up: ${leftOut.join(', ')}`);
    const minutesTaken = outcomes.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
    print(`seed ${seed}, ${minutesTaken.toFixed(1)} minutes`);
    print(`${passed} passed, ${outcomes.length - passed} failed`);
    return passed === outcomes.length && passed > 0;
  },
});

const COLUMNS: Readonly<Record<string, (outcome: Outcome) => string | number>> = {
  row: ({ row }) => row,
  trials: ({ trials }) => trials,
  sent: ({ sent }) => sent,
  ok: ({ ok }) => ok,
  doubt: (outcome) => outcome.in_doubt,
  lost: ({ lost }) => lost,
  recovery: (outcome) => `${outcome.recovery_seconds} s`,
  longest: (outcome) => `${outcome.longest_response_ms} ms`,
  seconds: ({ seconds }) => seconds,
  '': ({ passed }) => (passed ? '' : 'FAILED'),
};
