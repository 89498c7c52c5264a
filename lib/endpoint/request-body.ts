import { isUtf8 } from 'node:buffer';
import httpJsonBodyParser from '@middy/http-json-body-parser';
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

const { before: bodyParser } = httpJsonBodyParser({ disableContentTypeCheck: true });

/**
 * The JSON value of a received body, or the rule that it violates. It runs the parser itself, so that the fault is reported
 * together with those of other values. The parser takes a fourteenth of the time of a batch.
 */
export function parseBody(event: GatewayEvent): { readonly value?: unknown; readonly fault?: string } {
  const { body, isBase64Encoded } = event;
  if (isBase64Encoded) return { fault: 'must be UTF-8' };
  if (!body) return { fault: 'must not be empty' };
  try {
    bodyParser?.({ event } as never);
    return { value: event.body };
  } catch {
    return parseWithoutGuard(body);
  }
}

/** The parser also refuses members such as `__proto__`. Here they are unknown members, and are ignored. */
function parseWithoutGuard(body: string) {
  try {
    return { value: JSON.parse(body) };
  } catch {
    return { fault: 'must be valid JSON' };
  }
}
