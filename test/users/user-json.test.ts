import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isoTime } from '../../lib/json/iso-time.ts';

/** The range of Date, in milliseconds since 1970. */
const LAST_TIMESTAMP = 8.64e15;

test('a time has the text that Date writes', () => {
  void fc.assert(
    fc.property(
      fc.oneof(
        fc.integer({ min: -LAST_TIMESTAMP, max: LAST_TIMESTAMP }),
        fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
      ),
      (milliseconds) => {
        expect(isoTime(milliseconds)).toBe(new Date(milliseconds).toISOString());
      },
    ),
    { numRuns: 5000 },
  );
});

test('times of days with the same place in the cache have different texts', () => {
  const days = [0, 256, 512, 1, 257, 0].flatMap((day) => [day, day]);
  const times = days.map((day, place) => day * 86_400_000 + place);
  expect(times.map(isoTime)).toEqual(times.map((time) => new Date(time).toISOString()));
});
