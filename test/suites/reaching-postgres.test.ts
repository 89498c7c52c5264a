import { describe, expect, test } from 'vitest';
import { LEFT_OUT as LEFT_OUT_OF_DISTRIBUTED } from '../distributed/left-out.ts';
import { LEFT_OUT as LEFT_OUT_OF_POOLED } from '../pooled/left-out.ts';
import { filesReachingPostgres, patternsOfNone } from './reaching-postgres.ts';

describe.each([
  ['behind a pooler', LEFT_OUT_OF_POOLED],
  ['with the habits of a distributed engine', LEFT_OUT_OF_DISTRIBUTED],
])('%s', (_title, leftOut) => {
  test('every file that reaches PostgreSQL runs in the suite, unless a line has a reason against it', () => {
    expect(filesReachingPostgres(leftOut)).toEqual(
      expect.arrayContaining([
        'test/fuzz/fuzz.test.ts',
        'test/http/responses.test.ts',
        'test/users/deleted-user.test.ts',
        'test/users/list.test.ts',
      ]),
    );
    expect(filesReachingPostgres(leftOut)).not.toContain('test/http/docs.test.ts');
  });

  test('every line matches a file', () => {
    expect(patternsOfNone(leftOut)).toEqual([]);
  });
});
