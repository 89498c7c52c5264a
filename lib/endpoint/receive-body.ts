import { isUtf8 } from 'node:buffer';
import { freeBytes } from '../free-bytes.ts';
import type { GatewayEvent } from '../http/gateway.ts';
import { Problem } from '../http/problem.ts';

/** Receives the body, of at most `limit` bytes, as text. Bytes that are not UTF-8 stay in base64. */
export async function receiveBody(limit: number, event: GatewayEvent): Promise<void> {
  const bytes = await readBytes(event, limit);
  if (bytes.length > limit) throw refuseLargeBody(limit);
  Object.assign(event, toText(bytes));
  freeBytes(bytes);
}

/** The refusal of a body with more than `limit` bytes. */
export function refuseLargeBody(limit: number): Problem {
  return new Problem('payload_too_large_error', { detail: `The body must not exceed ${limit} bytes.` });
}

function toText(bytes: Buffer): Pick<GatewayEvent, 'body' | 'isBase64Encoded'> {
  if (isUtf8(bytes)) return { body: bytes.toString(), isBase64Encoded: false };
  return { body: bytes.toString('base64'), isBase64Encoded: true };
}

async function readBytes(event: GatewayEvent, limit: number): Promise<Buffer> {
  if (event.receiveBody) return event.receiveBody(limit);
  const { body, isBase64Encoded } = event;
  return Buffer.from(body ?? '', isBase64Encoded ? 'base64' : 'utf8');
}
