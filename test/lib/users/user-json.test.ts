import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { momentText } from '../../../lib/moment-text.ts';
import { userJson } from '../../../lib/users/user-json.ts';
import { representation } from '../../../lib/users/user-reply.ts';
import { anyMoment, anyUser } from '../../stage/any-user.ts';

test('a moment is written as Date writes it', () => {
  void fc.assert(
    fc.property(anyMoment, (milliseconds) => {
      expect(momentText(milliseconds)).toBe(new Date(milliseconds).toISOString());
    }),
    { numRuns: 5000 },
  );
});

test('a user is written as JSON.stringify writes it, to the byte, whatever its texts hold', () => {
  void fc.assert(
    fc.property(anyUser, (user) => {
      expect(userJson(user)).toBe(JSON.stringify(representation(user)));
    }),
    { numRuns: 5000 },
  );
});
