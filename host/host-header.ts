import type { IncomingMessage } from 'node:http';
import type { GatewayEvent } from '../lib/http/gateway.ts';
import type { Problem } from '../lib/http/problem.ts';
import { refuseHostHeader } from '../lib/http/refusals.ts';

/** The refusal of a request without exactly one Host header (RFC 9112 section 3.2). HTTP/1.0 needs none. */
export function faultOfHostHeader(
  { httpVersion, rawHeaders }: IncomingMessage,
  { headers }: GatewayEvent,
): Problem | undefined {
  const isMissing = headers.host === undefined && httpVersion !== '1.0';
  const isRepeated = headers.host?.includes(',') === true && countOf('host', rawHeaders) > 1;
  return isMissing || isRepeated ? refuseHostHeader() : undefined;
}

function countOf(name: string, rawHeaders: readonly string[]): number {
  return rawHeaders.filter((header, index) => index % 2 === 0 && header.toLowerCase() === name).length;
}
