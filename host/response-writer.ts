import type { ServerResponse } from 'node:http';
import { freeBytes } from '../lib/free-bytes.ts';
import type { GatewayResult } from '../lib/http/gateway.ts';
import type { UnflushedResponses } from './sockets/unflushed-responses.ts';

/** In milliseconds: how long a client may continue to send a body that is no longer needed, if its connection ends. */
const LINGER_MS = 5000;

/**
 * In characters. For a longer text, Node keeps the text and a buffer of three times its length until the client has
 * read it. Bytes are kept once, and 200 KB are sent with a sixth less CPU time.
 */
const MAX_TEXT_LENGTH = 65_536;

/** In milliseconds: how long a client whose body was refused may continue to send. */
const REFUSED_LINGER_MS = 1000;

/**
 * Writes an endpoint's result as the HTTP response. The client may still be sending its body. If the body was refused,
 * the connection is closed, after at most `maxRest` further bytes.
 * `keepAliveTimeout` is in seconds.
 */
export function writeResponse(
  response: ServerResponse,
  { statusCode, headers, body: content }: GatewayResult,
  isBodyToCome: boolean,
  unflushed: UnflushedResponses,
  { keepAliveTimeout, maxRest }: { readonly keepAliveTimeout: number; readonly maxRest?: number | undefined },
): void {
  const body =
    typeof content === 'string' && content.length > MAX_TEXT_LENGTH ? Buffer.from(content) : content;
  const length = Buffer.byteLength(body);
  const isLast = !response.shouldKeepAlive || response.getHeader('Connection') === 'close';
  // The header fields are one flat array, which Node copies to the socket. `setHeader` for each field, or an object,
  // would cost a quarter of Node's time for a request.
  const fields: string[] = [];
  // These statuses have no content, and therefore no length (RFC 9110 section 8.6). HEAD has the length of GET.
  if (statusCode !== 204 && statusCode !== 304 && headers['Content-Length'] === undefined)
    fields.push('Content-Length', String(length));
  for (const name in headers) fields.push(name, headers[name] as string);
  // Node announces only its own timer. HTTP/1.0 does not have the field.
  if (!isLast) fields.push('Connection', 'keep-alive');
  if (!isLast && response.req.httpVersion !== '1.0') fields.push('Keep-Alive', `timeout=${keepAliveTimeout}`);
  response.writeHead(statusCode, fields);
  if (maxRest !== undefined) endConnection(response, body, maxRest);
  else if (isBodyToCome && isLast) endAfterRequest(response, body);
  // A text with as many bytes as characters is ASCII, which is equal in Latin-1, and Node copies Latin-1 unchanged. With
  // UTF-8, a list of 100 took the server a tenth longer.
  else response.end(body, body.length === length ? 'latin1' : 'utf8');
  if (typeof body !== 'string') response.once('close', () => freeBytes(body));
  if (response.writableLength > 0) unflushed.add(response, length);
}

/** Closing a connection whose client is still sending resets it, and the response is lost (RFC 9112 section 9.6). */
function endAfterRequest(response: ServerResponse, body: string | Buffer): void {
  writeNow(response, body);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LINGER_MS).unref();
  response.req.once('end', end).once('close', end).resume();
}

/** Ends the server's side at once, and reads what still arrives, so that no reset overtakes the response. */
function endConnection(response: ServerResponse, body: string | Buffer, maxRest: number): void {
  const { socket } = response.req;
  let left = maxRest;
  writeNow(response, body);
  socket.end();
  setTimeout(() => socket.destroy(), REFUSED_LINGER_MS).unref();
  socket.once('end', () => socket.destroy());
  socket.on('data', ({ length }: Buffer) => {
    left -= length;
    if (left < 0) socket.destroy();
  });
  response.req.resume();
}

function writeNow(response: ServerResponse, body: string | Buffer): void {
  if (body.length === 0) response.flushHeaders();
  else response.write(body);
}
