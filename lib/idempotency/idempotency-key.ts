import * as z from 'zod';

/** A structured-field string without parameters (RFC 9651 section 3.3.3). */
const STRING = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;
/** Visible ASCII; a comma is what joins two header lines. */
const BARE = /^(?!")[!-+\--~]+$/;
const VISIBLE = /^[!-~]{1,255}$/;

const FORM = 'must be 1 to 255 visible ASCII characters, in double quotes where a comma is among them';

/**
 * The field value of `Idempotency-Key`, read as the key itself: `k` and `"k"` are one key.
 *
 * @see draft-ietf-httpapi-idempotency-key-header-07 section 2.1
 */
const IdempotencyKey = z
  .string()
  .refine((value) => keyIn(value) !== undefined, FORM)
  .transform((value) => keyIn(value) ?? '')
  .meta({
    override: { type: 'string', minLength: 1, maxLength: 512 },
    description:
      "A key of the caller's choice, 1 to 255 visible ASCII characters: the same request sent again under its key " +
      'within 24 hours is answered again, and not carried out again. A key may stand in double quotes.',
    example: '"8e03978e-40d5-43e8-bc93-6894a57f9324"',
  });

function keyIn(field: string): string | undefined {
  const value = field.replace(/^[ \t]+|[ \t]+$/g, '');
  const key = BARE.test(value) ? value : STRING.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1');
  return key !== undefined && VISIBLE.test(key) ? key : undefined;
}

/** The header fields of an operation that takes a key. */
export const IdempotencyHeaders = z.object({ 'Idempotency-Key': IdempotencyKey.optional() });
