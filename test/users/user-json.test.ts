import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isoTime } from '../../lib/json/iso-time.ts';
import { userJson } from '../../lib/users/user-json.ts';
import { anyMoment, anyUser, representation } from '../stage/any-user.ts';

test('a moment is written as Date writes it', () => {
  void fc.assert(
    fc.property(anyMoment, (milliseconds) => {
      expect(isoTime(milliseconds)).toBe(new Date(milliseconds).toISOString());
    }),
    { numRuns: 5000 },
  );
});

test('moments whose minutes are kept in one place do not meet', () => {
  const minutes = [0, 256, 512, 1, 257, 0].flatMap((minute) => [minute, minute]);
  const moments = minutes.map((minute, place) => minute * 60_000 + place);
  expect(moments.map(isoTime)).toEqual(moments.map((moment) => new Date(moment).toISOString()));
});

test('a user is written as JSON.stringify writes it, to the byte, whatever its texts hold', () => {
  void fc.assert(
    fc.property(anyUser, (user) => {
      expect(userJson(user)).toBe(JSON.stringify(representation(user)));
    }),
    { numRuns: 5000 },
  );
});
