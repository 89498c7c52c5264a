import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { createRefusingHandler } from '../../lib/endpoint/middleware-stack.ts';
import type { GatewayEvent, GatewayResult, Handler } from '../../lib/http/gateway.ts';
import type { Problem } from '../../lib/http/problem.ts';
import { invalidHttp, largeHeaderFields, slowRequest } from '../../lib/http/refusals.ts';
import type { ExchangeParts } from '../exchange.ts';
import type { Connection, ConnectionRequest } from './connections.ts';

/** How long a refused client may continue to send before its connection is cut. */
const LINGER_MS = 1000;

type ClientErrorParts = Pick<ExchangeParts, 'service' | 'connections'>;

type ClientError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

/** A request that the parser could not read. Its response has the path `/` and a new request ID. */
export const UNREADABLE: GatewayEvent = {
  rawPath: '/',
  rawQueryString: '',
  headers: {},
  requestContext: { http: { method: '' } },
  isBase64Encoded: false,
};

/** Responds to requests that Node's parser refuses by itself, but never to a request that already has a response. */
export function answerClientErrors(server: Server, { service, connections }: ClientErrorParts): void {
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
    // A response to HEAD has no content (RFC 9110 section 9.3.2).
    const method = error.rawPacket?.toString('latin1', 0, 5) === 'HEAD ' ? 'HEAD' : '';
    respondNext(problemOf(error), connection, { ...UNREADABLE, requestContext: { http: { method } } });
  });

  server.on('connect', (request, socket: Socket) => {
    // Node has removed its own listener. Without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy());
    // Repeated fields are joined by a comma and a space, which a request ID cannot contain.
    const event = { ...UNREADABLE, headers: request.headers as GatewayEvent['headers'] };
    respondNext(invalidHttp('CONNECT is not served'), connections.of(socket), event);
  });

  function respondNext(problem: Problem, { socket, current }: Connection, event = UNREADABLE): void {
    const handler = createRefusingHandler(service, problem);
    if (!current) answer(handler, event, socket);
    // The fault is in the data after a complete request. That request is answered first.
    else if (current.request.complete) onceAnswered(current, () => answer(handler, event, socket));
    else breakOff(problem, current, socket);
  }
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
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** The request may already have its one response. */
function breakOff(problem: Problem, current: ConnectionRequest, socket: Socket): void {
  const { response } = current;
  response.shouldKeepAlive = false;
  current.rejectBody(problem);
  // The response, sent or about to be sent, may wait for a moment for the end of the body.
  const end = () => response.headersSent && response.end();
  end();
  setTimeout(end, LINGER_MS).unref();
  onceAnswered(current, () => socket.destroySoon());
}

function onceAnswered({ response }: ConnectionRequest, then: () => void): void {
  if (response.writableFinished) then();
  else response.once('finish', then);
}

function problemOf({ code, message }: ClientError): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return slowRequest();
  if (code === 'HPE_HEADER_OVERFLOW') return largeHeaderFields();
  return invalidHttp(message);
}
