import { isUtf8 } from 'node:buffer';
import { freeBytes } from '../free-bytes.ts';
import type { GatewayEvent } from '../http/gateway.ts';
import { Problem } from '../http/problem.ts';

/** Receives the body, of at most `limit` bytes, as text. Bytes that are not UTF-8 stay in base64. */
export async function receiveBody(limit: number, event: GatewayEvent): Promise<void> {
  const { body, isBase64Encoded } = event;
  const bytes = event.receiveBody
    ? await event.receiveBody(limit)
    : Buffer.from(body ?? '', isBase64Encoded ? 'base64' : 'utf8');
  if (bytes.length > limit) throw largeBody(limit);
  const isText = isUtf8(bytes);
  Object.assign(event, { body: bytes.toString(isText ? 'utf8' : 'base64'), isBase64Encoded: !isText });
  freeBytes(bytes);
}

export function largeBody(limit: number): Problem {
  return new Problem('payload_too_large_error', { detail: `The body must not exceed ${limit} bytes.` });
}
