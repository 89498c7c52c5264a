import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { momentText } from '../../../lib/moment-text.ts';
import { userJson } from '../../../lib/users/user-json.ts';
import { representation } from '../../../lib/users/user-reply.ts';

/** What Date can tell, in milliseconds since 1970. */
const LAST_MOMENT = 8.64e15;

const anyMoment = fc.oneof(
  fc.integer({ min: -LAST_MOMENT, max: LAST_MOMENT }),
  fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
);
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom(
      '"',
      '\\',
      '\u0000',
      '\u001f',
      '\u007f',
      '\u2028',
      '\u2029',
      '\ud83d',
      '\ude00',
      '<',
      '/',
      'ß',
    ),
  }),
);

test('a moment is written as Date writes it', () => {
  void fc.assert(
    fc.property(anyMoment, (milliseconds) => {
      expect(momentText(milliseconds)).toBe(new Date(milliseconds).toISOString());
    }),
    { numRuns: 5000 },
  );
});

test('a user is written as JSON.stringify writes it, to the byte, whatever its texts hold', () => {
  const anyUser = fc.record({
    id: fc.uuid(),
    email: anyText,
    full_name: fc.option(anyText),
    is_active: fc.boolean(),
    created_at: anyMoment,
    updated_at: anyMoment,
    version: fc.constant('1'),
  });
  void fc.assert(
    fc.property(anyUser, fc.boolean(), (user, isNew) => {
      const written = isNew ? { ...user, updated_at: user.created_at } : user;
      expect(userJson(written)).toBe(JSON.stringify(representation(written)));
    }),
    { numRuns: 5000 },
  );
});
