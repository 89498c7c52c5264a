import { randomUUID } from 'node:crypto';
import { REQUEST_ID } from '../../text.ts';

/**
 * The request ID for a header's value: the value itself, or a new UUID version 4. The container joins repeated headers
 * with a comma and a space, so their value is not acceptable.
 */
export function chooseRequestId(given: string | undefined): string {
  return given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
}
