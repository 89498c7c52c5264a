import { chmod, mkdtemp, readdir, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rows } from './broken/rows.ts';
import { runApart } from './run-apart.ts';

const FAULTS = {
  uncaught: /^not caught: Error: this is not awaited\n/,
  ended: /^the row's process has ended with 7$/,
  endless: /^Error: the row has not ended after 1 seconds\n/,
  busy: /^the row has not ended after 20 seconds$/,
  idle: /^a trial was made$/,
  claimed: /^this holds: 7$/,
  altered: /^\S+ is not in the table as its version 1\nthe process has ended: .*SIGKILL/,
  untidy: /^not undone: Error: this stays$/,
};

describe('a row that goes wrong or finds a fault has failed, says why, and leaves no file behind', () => {
  test.each(Object.entries(FAULTS))('%s', { timeout: 60_000 }, async (name, fault) => {
    const row = rows.find((one) => one.name === name);
    const within = await mkdtemp(join(tmpdir(), 'user-management-apart-'));
    await chmod(within, 0o755);
    const outcome = row && (await runApart(row, { ...ORDER, within }));

    expect(outcome).toMatchObject({ row: name, seed: 1, passed: false, lost: name === 'altered' ? 1 : 0 });
    expect(outcome?.faults.join('\n')).toMatch(fault);
    expect(await readdir(within)).toEqual([]);
    await rmdir(within);
  });
});

const ORDER = { rows: join(import.meta.dirname, 'broken/rows.ts'), seed: 1, trials: 1, grace: 19 };
