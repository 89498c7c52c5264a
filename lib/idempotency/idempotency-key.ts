import * as z from 'zod';

/** Visible ASCII without a quote at its beginning, and without a comma: two header lines arrive joined by one. */
const BARE = /^[\x21\x23-\x2b\x2d-\x7e][\x21-\x2b\x2d-\x7e]{0,254}$/;
/** A structured-field string without parameters (RFC 9651 section 3.3.3), of visible ASCII. */
const QUOTED = /^\x22((?:[\x21\x23-\x5b\x5d-\x7e]|\\[\x22\\]){1,255})\x22$/;

/** How long a key is kept after the success. A replay does not prolong this time. */
export const KEY_LIFETIME_HOURS = 24;

const FORM = 'must be 1 to 255 visible ASCII characters, in double quotes if they contain a comma';

/**
 * The field value of `Idempotency-Key`, read as the key itself: `k` and `"k"` are one key.
 *
 * @see draft-ietf-httpapi-idempotency-key-header-07 section 2.1
 */
const IdempotencyKey = z
  .string()
  .transform(parseKey)
  .refine((key) => key !== undefined, FORM)
  .optional()
  .meta({
    override: {
      type: 'string',
      minLength: 1,
      maxLength: 512,
      pattern: `${BARE.source}|${QUOTED.source}`,
      examples: ['8e03978e-40d5-43e8-bc93-6894a57f9324'],
    },
    description:
      'A key that the caller chooses: 1 to 255 visible ASCII characters, which may be in double quotes. If the same request ' +
      `is sent again with its key within ${KEY_LIFETIME_HOURS} hours, the service responds again and does not carry it out again.`,
  });

function parseKey(field: string): string | undefined {
  // Without the lookbehind, the time for a field of tabs grows with the square of their number.
  const value = field.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '');
  return BARE.test(value) ? value : QUOTED.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1');
}

/** The header fields of an operation that takes a key. */
export const IdempotencyHeaders = z.object({ 'Idempotency-Key': IdempotencyKey });
