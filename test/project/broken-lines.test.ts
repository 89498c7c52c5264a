import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { copyOfProject, openFolder, removeProject } from '../stage/project-copy.ts';
import { runInCopy } from './run-in-copy.ts';

/** A part of a line that stands once in its file, and the file of tests that finds its change. */
type BrokenLine = {
  readonly file: string;
  readonly line: string;
  readonly broken: string;
  readonly tests: string;
  /** A part of the name of a test that fails. */
  readonly sentence: string;
};

const BROKEN_LINES: readonly BrokenLine[] = [
  {
    file: 'handlers/users/get.ts',
    line: "role: 'users.read'",
    broken: "role: 'users.write'",
    tests: 'test/http/responses.test.ts',
    sentence: 'the role > of GET /api/v1/users/{id} is users.read',
  },
  {
    file: 'handlers/users/user-changes.ts',
    line: "role: 'users.read'",
    broken: "role: 'users.write'",
    tests: 'test/http/responses.test.ts',
    sentence: 'the role > of GET /api/v1/users/{id}/changes is users.read',
  },
  {
    file: 'lib/auth/claims.ts',
    line: 'Math.ceil(exp + clockTolerance)',
    broken: 'Math.ceil(exp + clockTolerance + 1)',
    tests: 'test/auth/claims.test.ts',
    sentence: 'ends a token that was accepted before',
  },
  {
    file: 'lib/auth/key-set.ts',
    line: 'MAX_PAUSE_MS = 10_000',
    broken: 'MAX_PAUSE_MS = 60_000',
    tests: 'test/auth/provider-unavailable.test.ts',
    sentence: 'the pauses between two fetches grow to 10 seconds',
  },
  {
    file: 'lib/users/list-cursor.ts',
    line: 'const values = FILTERS.map((name) => selection[name]);',
    broken: "const values = FILTERS.map((name) => (name === 'ids' ? undefined : selection[name]));",
    tests: 'test/users/list-cursors.test.ts',
    sentence: '422 names > cursor for ids beside it',
  },
  {
    file: 'lib/users/batch/user-batch.ts',
    line: "if (typeof value !== 'string') return false;",
    broken: "if (typeof value !== 'string' || faults.length > 0) return false;",
    tests: 'test/users/external-id-conflicts.test.ts',
    sentence: 'is 422 also for an external id of a refused item',
  },
  {
    file: 'lib/idempotency/idempotency-key.ts',
    line: '[\\x21-\\x2b\\x2d-\\x7e]{0,254}$/',
    broken: '[\\x21-\\x2b\\x2d-\\x7e]{0,253}$/',
    tests: 'test/idempotency/key.test.ts',
    sentence: 'a valid key is > 255 characters',
  },
  {
    file: 'lib/postgres/sessions/session-opening.ts',
    line: 'now - this.#lastFailureAt < SECOND_MS ?',
    broken: 'this.hasFailed ?',
    tests: 'test/engine/session-opening.test.ts',
    sentence: 'while every second attempt to connect fails, at most five attempts per second fail',
  },
  {
    file: 'lib/postgres/batcher.ts',
    line: 'item.limitTime(this.#options.poolTimeout,',
    broken: 'item.limitTime(this.#options.poolTimeout * 4,',
    tests: 'test/engine/pipelined-statements.test.ts',
    sentence: 'that wait for longer than SVC_POSTGRES_POOL_TIMEOUT to be sent are refused',
  },
  {
    file: 'lib/observability/line-writer.ts',
    line: 'this.dropped - this.#reported',
    broken: 'this.dropped',
    tests: 'test/observability/line-writer.test.ts',
    sentence: 'the number of lines dropped since the last time is reported',
  },
  {
    file: 'lib/json/json-writer.ts',
    line: 'MAX_TEXT_BYTES = 65_536',
    broken: 'MAX_TEXT_BYTES = 65_536_000',
    tests: 'test/engine/free-bytes.test.ts',
    sentence: 'a page of more than 64 KB has a buffer of its own',
  },
  {
    file: 'test/lab/ledger/history.ts',
    line: '? !user',
    broken: '? true',
    tests: 'test/lab/ledger/ledger.test.ts',
    sentence: 'a user that is in the table after its deletion',
  },
  {
    file: 'test/fuzz/conformance.ts',
    line: 'expect(Object.keys(contents)).toContain(mediaType);',
    broken: '',
    tests: 'test/fuzz/planted-faults.test.ts',
    sentence: 'the generated requests find another media type',
  },
  {
    file: 'test/lab/experiment.ts',
    line: 'process.exit(isKept ? 0 : 1)',
    broken: 'process.exit(0)',
    tests: 'test/lab/experiment.test.ts',
    sentence: 'a broken promise ends with 1',
  },
];

const folder = copyOfProject(openFolder(), ['test', 'events', 'vitest.config.ts', 'tsconfig.json']);

afterAll(() => removeProject(folder));

test.each(BROKEN_LINES)('$broken in $file is found: $sentence', { timeout: 120_000 }, async (row) => {
  const path = join(folder, row.file);
  const text = readFileSync(path, 'utf8');
  expect(text.split(row.line)).toHaveLength(2);
  writeFileSync(
    path,
    text.replace(row.line, () => row.broken),
  );
  const { output } = await runInCopy(folder, 'vitest', 'run', row.tests);
  writeFileSync(path, text);

  const failed = [...output.matchAll(/^failed: (.*)$/gm)].map(([, name = '']) => name);
  expect(failed.length, output).toBeLessThanOrEqual(3);
  expect(failed, output).toContainEqual(expect.stringContaining(row.sentence));
});
