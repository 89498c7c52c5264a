import { boundedText } from '../text.ts';

const MAX_LENGTH = 255;

/** Either side of the @. White space is as in ECMAScript. The escapes have the same meaning in other engines. */
const PART = '[^@\\s\\u0000-\\u001f\\u007f-\\u009f\\ufeff]+';
const ADDRESS = new RegExp(`^${PART}@${PART}$`);

/** The form of an address, for the documentation. */
export const EMAIL_FORM = { minLength: 1, maxLength: MAX_LENGTH, pattern: ADDRESS.source };

/** An address that a user may have. */
export const Email = boundedText(1, MAX_LENGTH)
  .refine(
    isAddress,
    'must have exactly one @ with at least one character on each side, and no white space or control characters',
  )
  .meta({
    ...EMAIL_FORM,
    description:
      'Exactly one @ with at least one character on each side, and no white space or control characters. Unique ' +
      'without regard to case. Stored and returned as given.',
    example: 'ada@example.com',
  });

function isAddress(text: string): boolean {
  return ADDRESS.test(text);
}
