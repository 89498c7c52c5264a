import type { ServerResponse } from 'node:http';
import type { GatewayResult } from '../lib/gateway.ts';
import { SILENCE } from './silent-connections.ts';
import { createUnsent } from './unsent.ts';

/** How long a client may go on with its body that was answered without it, where its connection ends; in milliseconds. */
const LINGER = 5000;

/** Responses on their way out. */
export type ResponseWriter = {
  /** Writes an endpoint's result as the HTTP response, to a client that may still be sending its body. */
  write(response: ServerResponse, result: GatewayResult, isBodyToCome: boolean): void;
  /** Resolves once clients have taken all that is written. */
  untilSent(): Promise<void>;
};

/**
 * Of a longer text Node keeps both itself and a buffer of three times its length until the client has read it. As bytes
 * it is kept once, and 200 KB are sent for a sixth less CPU; in characters.
 */
const LONG = 65_536;

/** The responses of one server. */
export function createResponseWriter(unsent = createUnsent()): ResponseWriter {
  return {
    write(response, { statusCode, headers, body: text }, isBodyToCome) {
      const body = text.length > LONG ? Buffer.from(text) : text;
      const length = Buffer.byteLength(body);
      const isLast = isLastOfConnection(response);
      const fields = flat(statusCode, headers, length);
      // Node tells of its own timer alone.
      if (!isLast) fields.push('Connection', 'keep-alive', 'Keep-Alive', `timeout=${SILENCE}`);
      response.writeHead(statusCode, fields);
      if (isBodyToCome && isLast) endAfterRequest(response, body);
      else response.end(body, encodingOf(body, length));
      if (response.writableLength > 0) unsent.add(response, length);
    },
    untilSent: unsent.untilSent,
  };
}

/**
 * A text of as many bytes as characters is ASCII, which is the same in Latin-1, and that Node copies as it is: of a list of
 * 100 as UTF-8 the server took a tenth longer.
 */
function encodingOf(body: string | Buffer, length: number): 'latin1' | 'utf8' {
  return typeof body === 'string' && body.length === length ? 'latin1' : 'utf8';
}

/**
 * The header fields one behind the other: what Node copies to the socket as it is. Set one by one, or as an object, each
 * would cost a quarter of all that Node does for a request.
 */
function flat(statusCode: number, headers: Readonly<Record<string, string>>, length: number): string[] {
  const fields: string[] = [];
  // These have no content, and so no length (RFC 9110 section 8.6); HEAD has told the length that GET would have.
  if (statusCode !== 204 && statusCode !== 304 && headers['Content-Length'] === undefined)
    fields.push('Content-Length', String(length));
  for (const name in headers) fields.push(name, headers[name] as string);
  return fields;
}

function isLastOfConnection(response: ServerResponse): boolean {
  return !response.shouldKeepAlive || response.getHeader('Connection') === 'close';
}

/** To close on a client that is still sending resets the connection, and the answer is lost (RFC 9112 section 9.6). */
function endAfterRequest(response: ServerResponse, body: string | Buffer): void {
  if (body.length === 0) response.flushHeaders();
  else response.write(body);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LINGER).unref();
  response.req.once('end', end).once('close', end).resume();
}
