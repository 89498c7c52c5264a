import type { ServerResponse } from 'node:http';
import type { GatewayResult } from '../lib/gateway.ts';

/** A client that takes longer than this to read its answer is cut off; in milliseconds. */
const READING_TIME = 10_000;

/** How long a client may go on with its body that was answered without it, where its connection ends; in milliseconds. */
const LINGER = 5000;

/** Responses on their way out. */
export type Outbox = {
  /** Writes an endpoint's result as the HTTP response, to a client that may still be sending its body. */
  write(response: ServerResponse, result: GatewayResult, isBodyToCome: boolean): void;
  /** Resolves once clients have taken what was written before. */
  untilSent(): Promise<unknown>;
};

/** The responses of one server. */
export function createOutbox(): Outbox {
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
      // A 204 has no content, and so no length (RFC 9110 section 8.6); HEAD tells the length that GET would have.
      if (statusCode !== 204) response.setHeader('Content-Length', Buffer.byteLength(body));
      response.writeHead(statusCode, headers);
      if (isBodyToCome && isLastOfConnection(response)) endAfterRequest(response, body);
      else response.end(body);
      if (response.writableLength > 0) watch(response);
    },
    untilSent: () =>
      Promise.all([...unsent].map((response) => new Promise((resolve) => response.once('close', resolve)))),
  };
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
