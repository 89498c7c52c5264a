import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ListRow } from '../../lib/postgres/index.ts';
import { fields } from '../../lib/users/fields.ts';
import { positionOf, usersJson } from '../../lib/users/list-json.ts';
import { type AnyUser, anyUser, nullFields, representation } from '../stage/any-user.ts';
import { rowsOf } from '../stage/received-rows.ts';

/** The first day that PostgreSQL supports. */
const FIRST_TIMESTAMP = -210_866_803_200_000;

/** The texts that PostgreSQL can store: UTF-8 without U+0000. */
const anyStored = anyUser.filter(
  (user) =>
    Object.values(user).every((value) => typeof value !== 'string' || value.isWellFormed()) &&
    Math.min(user.created_at, user.updated_at) >= FIRST_TIMESTAMP,
);

const ada: AnyUser = {
  ...nullFields,
  id: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70',
  email: 'ada@example.com',
  full_name: 'Ada "the Countess" Lovelace',
  is_active: true,
  created_at: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  updated_at: Date.UTC(2026, 6, 8, 9, 10, 11, 120),
  version: '1',
};
/** A long page is bytes. */
const jsonOf = (rows: readonly ListRow[]) => usersJson(rows).toString();
const plain = (users: readonly AnyUser[]) => JSON.stringify(users.map(representation));

describe('a page of users', () => {
  test('equals that of JSON.stringify byte for byte, for any texts and times', () => {
    void fc.assert(
      fc.property(fc.array(anyStored, { maxLength: 20 }), fc.nat(9), (users, before) => {
        expect(jsonOf(rowsOf(users, before))).toBe(plain(users));
      }),
      { numRuns: 2000 },
    );
  });

  test('can have times of many minutes in any order, before and after 1970', () => {
    const users = Array.from({ length: 1000 }, (_, index) => ({
      ...ada,
      // Some minutes with the same place in the cache follow each other.
      created_at: ada.created_at + (index % 7) * 256 * 60_000 + index,
      updated_at: -ada.updated_at + (index % 3) * 60_000 + index * 1001,
    }));

    expect(jsonOf(rowsOf(users))).toBe(plain(users));
    expect(jsonOf(rowsOf(users))).toBe(plain(users));
  });

  test('without users is an empty array', () => {
    expect(jsonOf([])).toBe('[]');
  });

  test('has enough memory for the longest texts of 1,000 users, after pages of any length', () => {
    const long = { ...ada, email: '\u0001'.repeat(255), full_name: '田"'.repeat(127) };
    const users = Array.from({ length: 1000 }, (_, index) => (index % 2 === 0 ? long : ada));

    expect(jsonOf(rowsOf(users))).toBe(plain(users));
    expect(jsonOf(rowsOf([ada]))).toBe(plain([ada]));
  });

  test('is a text, or, with more than 64 KB, the whole of a memory that can be freed when it is sent', () => {
    const long = usersJson(rowsOf(Array.from({ length: 1000 }, () => ada)));

    expect(usersJson(rowsOf([ada]))).toBe(plain([ada]));
    expect(long).toBeInstanceOf(Buffer);
    expect((long as Buffer).buffer.byteLength).toBe(long.length);
  });

  test('contains nothing of a user that could not be written', () => {
    const [infinite] = rowsOf([{ ...ada, email: 'grace@example.com' }]) as [ListRow];
    // The last time, before fields that are absent: each has a length of 4 bytes and no value.
    const afterTimes = fields.slice(fields.findLastIndex(({ sqlType }) => sqlType === 'timestamptz') + 1);
    const end = infinite.bytes.length - 4 * afterTimes.length;
    infinite.bytes.fill(0x7f, end - 8, end);

    expect(() => jsonOf([infinite])).toThrow(RangeError);
    expect(jsonOf(rowsOf([ada]))).toBe(plain([ada]));
  });

  test('ends with the time, to the millisecond, and the id of its last user', () => {
    void fc.assert(
      fc.property(anyStored, (user) => {
        const [row] = rowsOf([user]) as [ListRow];
        expect(positionOf(row)).toEqual({ created_at: user.created_at, id: user.id.replaceAll('-', '') });
      }),
      { numRuns: 2000 },
    );
  });
});
