import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rows } from './broken/rows.ts';
import { runApart } from './run-apart.ts';

const FAULTS = {
  refused: /^Error: this did not hold\n/,
  uncaught: /^nobody has caught: Error: nobody waits for this\n/,
  ended: /^the row's process has ended with 7$/,
  endless: /^Error: the row has not ended after 1 seconds\n/,
  busy: /^the row has not ended after 20 seconds$/,
  untidy: /^not undone: Error: this stays$/,
};

describe('a row that goes wrong by itself has failed, and says why', () => {
  test.each(Object.entries(FAULTS))('%s', { timeout: 60_000 }, async (name, fault) => {
    const row = rows.find((one) => one.name === name);
    const outcome =
      row && (await runApart(row, { ...ORDER, rows: join(import.meta.dirname, 'broken/rows.ts') }));

    expect(outcome).toMatchObject({ row: name, seed: 1, passed: false, lost: 0 });
    expect(outcome?.faults[0]).toMatch(fault);
  });
});

const ORDER = { seed: 1, trials: 1, grace: 19 };
