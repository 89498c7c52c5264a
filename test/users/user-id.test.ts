import { afterEach, expect, test, vi } from 'vitest';
import { itemsIn } from '../../lib/users/batch/insert-items.ts';

const UUID_V7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

afterEach(() => {
  vi.useRealTimers();
});

const newUserId = () => String(itemsIn([undefined]).id);

/** The time in an id, in milliseconds since 1970 (RFC 9562 section 5.7). */
const timeOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

test('ids are UUIDs of version 7, each greater than the previous one', () => {
  const before = Date.now();
  const ids = itemsIn(Array.from({ length: 5000 }, () => undefined)).id;
  const after = Date.now();

  expect(ids.filter((id) => !UUID_V7.test(id))).toEqual([]);
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  expect(timeOf(ids[0] ?? '')).toBeGreaterThanOrEqual(before);
  expect(timeOf(ids.at(-1) ?? '')).toBeLessThanOrEqual(after);
});

test('ids continue to grow after the clock is set back', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(new Date('2036-01-01T00:00:00Z'));
  const before = newUserId();
  vi.setSystemTime(new Date('2035-01-01T00:00:00Z'));
  const ids = [before, newUserId(), newUserId()];

  expect([...ids].sort()).toEqual(ids);
  expect(ids.map(timeOf)).toEqual(ids.map(() => Date.parse('2036-01-01T00:00:00Z')));
});

test('no two ids have the same random bits', () => {
  const endOf = (id: string) => id.slice(-12);

  expect(new Set(Array.from({ length: 1000 }, () => endOf(newUserId()))).size).toBe(1000);
});
