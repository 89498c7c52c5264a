import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isoTime } from '../../lib/json/iso-time.ts';
import { userJson } from '../../lib/users/user-reply.ts';
import { anyMoment, anyUser, representation } from '../stage/any-user.ts';

test('a time has the text that Date writes', () => {
  void fc.assert(
    fc.property(anyMoment, (milliseconds) => {
      expect(isoTime(milliseconds)).toBe(new Date(milliseconds).toISOString());
    }),
    { numRuns: 5000 },
  );
});

test('times of days with the same place in the cache have different texts', () => {
  const days = [0, 256, 512, 1, 257, 0].flatMap((day) => [day, day]);
  const times = days.map((day, place) => day * 86_400_000 + place);
  expect(times.map(isoTime)).toEqual(times.map((time) => new Date(time).toISOString()));
});

test('the JSON of a user equals that of JSON.stringify byte for byte, for any texts', () => {
  void fc.assert(
    fc.property(anyUser, (user) => {
      const times = { created_at: String(user.created_at), updated_at: String(user.updated_at) };
      expect(userJson({ ...user, ...times })).toBe(JSON.stringify(representation(user)));
    }),
    { numRuns: 5000 },
  );
});
