import { expect, test } from 'vitest';
import { rows } from './rows/index.ts';
import { runRow } from './run-row.ts';

/** The long proofs in short: the same rows, with so few trials that each takes seconds. */
const TRIALS = {
  model: 1500,
  'model-under-faults': 2,
  'killed-before-answer': 2,
  'change-feed': 4000,
};

test.each(Object.entries(TRIALS))('%s holds, with %i trials', { timeout: 120_000 }, async (name, trials) => {
  const row = rows.find((one) => one.name === name);
  const outcome = row && (await runRow(row, { seed: 1, trials }));

  expect(outcome).toMatchObject({ faults: [], passed: true, lost: 0 });
  expect(outcome?.trials).toBeGreaterThanOrEqual(trials);
});
