import { expect, test } from 'vitest';
import { isoTime } from '../../lib/json/iso-time.ts';

test('a time has the text that Date writes, also on days with the same place in the cache', () => {
  const days = [-100_000_000, 0, 256, 512, 1, 257, 0, 99_999_999].flatMap((day) => [day, day]);
  const times = days.map((day, place) => day * 86_400_000 + place);
  expect(times.map(isoTime)).toEqual(times.map((time) => new Date(time).toISOString()));
});
