import { randomUUID } from 'node:crypto';

/** A request ID: 1 to 128 characters of visible ASCII. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

export const REQUEST_ID_FORM = { minLength: 1, maxLength: 128, pattern: REQUEST_ID.source };

/**
 * The request ID for a header's value: the value itself, or a new UUID version 4. The container joins repeated headers
 * with a comma and a space, so their value is not acceptable.
 */
export function chooseRequestId(given: string | undefined): string {
  return given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
}
