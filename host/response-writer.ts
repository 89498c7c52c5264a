import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { GatewayResult } from '../lib/gateway.ts';

/** A client that takes longer than this to read its answer is cut off; in milliseconds. */
const READING_TIME = 10_000;

/** How long a client may go on with its body that was answered without it, where its connection ends; in milliseconds. */
const LINGER = 5000;

/** Responses on their way out. */
export type ResponseWriter = {
  /** Writes an endpoint's result as the HTTP response, to a client that may still be sending its body. */
  write(response: ServerResponse, result: GatewayResult, isBodyToCome: boolean): void;
  /** Resolves once clients have taken all that is written. */
  untilSent(): Promise<void>;
};

/** The responses of one server. */
export function createResponseWriter(): ResponseWriter {
  const unsent = new Set<ServerResponse>();

  function watch(response: ServerResponse): void {
    const timer = setTimeout(() => response.destroy(), READING_TIME).unref();
    unsent.add(response);
    response.once('close', () => {
      clearTimeout(timer);
      unsent.delete(response);
    });
  }

  return {
    write(response, { statusCode, headers, body }, isBodyToCome) {
      response.writeHead(statusCode, flat(statusCode, headers, body));
      if (isBodyToCome && isLastOfConnection(response)) endAfterRequest(response, body);
      else response.end(body);
      if (response.writableLength > 0) watch(response);
    },
    async untilSent() {
      // The last answer is written right after the drain has ended, and others while these are on their way.
      do {
        await setImmediate();
        await Promise.all([...unsent].map((response) => once(response, 'close')));
      } while (unsent.size > 0);
    },
  };
}

/**
 * The header fields one behind the other: what Node copies to the socket as it is. Set one by one, or as an object, each
 * would cost a quarter of all that Node does for a request.
 */
function flat(statusCode: number, headers: Readonly<Record<string, string>>, body: string): string[] {
  const fields: string[] = [];
  // These have no content, and so no length (RFC 9110 section 8.6); HEAD has told the length that GET would have.
  if (statusCode !== 204 && statusCode !== 304 && headers['Content-Length'] === undefined)
    fields.push('Content-Length', String(Buffer.byteLength(body)));
  for (const name in headers) fields.push(name, headers[name] as string);
  return fields;
}

function isLastOfConnection(response: ServerResponse): boolean {
  return !response.shouldKeepAlive || response.getHeader('Connection') === 'close';
}

/** To close on a client that is still sending resets the connection, and the answer is lost (RFC 9112 section 9.6). */
function endAfterRequest(response: ServerResponse, body: string): void {
  if (body === '') response.flushHeaders();
  else response.write(body);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LINGER).unref();
  response.req.once('end', end).once('close', end).resume();
}
