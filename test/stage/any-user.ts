import * as fc from 'fast-check';

/** What Date can tell, in milliseconds since 1970. */
const LAST_MOMENT = 8.64e15;

/** A moment that Date can tell, mostly one of these years. */
export const anyMoment = fc.oneof(
  fc.integer({ min: -LAST_MOMENT, max: LAST_MOMENT }),
  fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
);
/** Texts with all that JSON has to escape, and that is more than one byte; surrogates may stand alone. */
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

/** A user, as the database gives it. */
export const anyUser = fc
  .record({
    id: fc.uuid(),
    email: anyText,
    full_name: fc.option(anyText),
    is_active: fc.boolean(),
    created_at: anyMoment,
    updated_at: anyMoment,
    version: fc.constant('1'),
    isNew: fc.boolean(),
  })
  .map(({ isNew, ...user }) => (isNew ? { ...user, updated_at: user.created_at } : user));
