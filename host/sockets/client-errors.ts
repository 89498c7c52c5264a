import { METHODS, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { refuseWith } from '../../lib/endpoint/middleware-stack.ts';
import type { GatewayEvent, GatewayResult, Handler } from '../../lib/http/gateway.ts';
import type { Problem } from '../../lib/http/problem.ts';
import { refuseInvalidHttp, refuseLargeHeaderFields, refuseSlowRequest } from '../../lib/http/refusals.ts';
import type { ExchangeParts } from '../exchange.ts';
import type { Connection, ConnectionRequest } from './connections.ts';
import { parseRawHead, type RawHead, UNREADABLE } from './raw-head.ts';

/** In milliseconds: how long a refused client may continue to send before its connection is cut. */
const LINGER = 1000;

type ClientErrorParts = Pick<ExchangeParts, 'service' | 'router' | 'connections'>;

type ClientError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

/** Responds to requests that Node's parser refuses by itself, but never to a request that already has a response. */
export function answerClientErrors(server: Server, { service, router, connections }: ClientErrorParts): void {
  server.on('clientError', (error: ClientError, socket: Socket) => {
    // A connection that was opened ahead of need. Its client would take a 408 for the response to a request that it has
    // just sent.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;
    const connection = connections.of(socket);
    // Further data of a refused client is not HTTP to the parser, either.
    if (connection.isRefused && error.code?.startsWith('HPE_')) return;
    // Its response is sent, and what follows is read so that the client gets the response.
    if (connection.isClosing && !socket.writable) return;
    connection.isRefused = true;
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy(error);
    // A later packet may begin anywhere in a request.
    const { rawPacket } = error;
    const isFirst = rawPacket?.length === socket.bytesRead && !connection.current;
    const head = isFirst ? parseRawHead(rawPacket) : undefined;
    if (head && isOnlyMethodUnknown(head))
      answer(router.find(methodOf(head), head.rawPath).handler, head, socket);
    else refuseNext(problemOf(error), connection, head);
  });

  server.on('connect', (request, socket: Socket) => {
    // Node has removed its own listener. Without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy());
    // Repeated fields are joined by a comma and a space, which a request ID cannot contain.
    const event = { ...UNREADABLE, headers: request.headers as GatewayEvent['headers'] };
    refuseNext(refuseInvalidHttp('CONNECT is not served'), connections.of(socket), event);
  });

  function refuseNext(problem: Problem, { socket, current }: Connection, event = UNREADABLE): void {
    const refuse = refuseWith(service, problem);
    if (!current) answer(refuse, event, socket);
    // The fault is in the data after a complete request. That request is answered first.
    else if (current.request.complete) onceAnswered(current, () => answer(refuse, event, socket));
    else breakOff(problem, current, socket);
  }
}

const methodOf = ({ requestContext }: GatewayEvent): string => requestContext.http.method;

/** Whether the only fault of a request is a method that Node's parser does not know. */
function isOnlyMethodUnknown(head: RawHead): boolean {
  const hasHost = head.headers.host !== undefined || head.httpVersion === '1.0';
  return hasHost && !METHODS.includes(methodOf(head));
}

/** Sends the last response of a connection, for which Node has no response object. */
function answer(handler: Handler, event: GatewayEvent, socket: Socket): void {
  if (!socket.writable) return;
  // A handler never rejects. A failure here means that the connection cannot be written to.
  handler(event)
    .then((result) => write(result, socket))
    .catch(() => socket.destroy());
}

function write({ statusCode, headers, body }: GatewayResult, socket: Socket): void {
  const fields = {
    'Content-Length': Buffer.byteLength(body),
    ...headers,
    Date: new Date().toUTCString(),
    Connection: 'close',
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode]}`, ...lines, '', body].join('\r\n'));
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER).unref();
}

/** The request may already have its one response. */
function breakOff(problem: Problem, current: ConnectionRequest, socket: Socket): void {
  const { response } = current;
  response.shouldKeepAlive = false;
  current.refuseBody(problem);
  // The response, sent or about to be sent, may wait for a moment for the end of the body.
  const end = () => response.headersSent && response.end();
  end();
  setTimeout(end, LINGER).unref();
  onceAnswered(current, () => socket.destroySoon());
}

function onceAnswered({ response }: ConnectionRequest, then: () => void): void {
  if (response.writableFinished) then();
  else response.once('finish', then);
}

function problemOf({ code, message }: ClientError): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseSlowRequest();
  if (code === 'HPE_HEADER_OVERFLOW') return refuseLargeHeaderFields();
  return refuseInvalidHttp(message);
}
