import { type IncomingMessage, METHODS, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { GatewayEvent, GatewayResult, Handler } from '../lib/http/gateway.ts';
import { refuseWith } from '../lib/http/middleware-stack.ts';
import type { Problem } from '../lib/http/problem.ts';
import { refuseInvalidHttp, refuseLargeHeaderFields, refuseSlowRequest } from '../lib/http/refusals.ts';
import type { Service } from '../lib/service.ts';
import type { RequestEvent } from './gateway-adapter.ts';
import type { Router } from './router.ts';
import { type RawHead, rawHeadIn, UNREADABLE } from './sockets/raw-head.ts';

/** The request that a connection is busy with. */
export type Exchange = {
  readonly event: RequestEvent;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
};

/** In milliseconds: how long a refused client may continue to send before its connection is cut. */
const LINGER = 1000;

type ClientError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

/** Responds to requests that Node's parser refuses by itself, but never to a request that already has a response. */
export function answerClientErrors(
  server: Server,
  { settings, log }: Pick<Service, 'settings' | 'log'>,
  router: Router,
  exchanges: WeakMap<Socket, Exchange>,
): void {
  const refused = new WeakSet<Socket>();

  server.on('clientError', (error: ClientError, socket: Socket) => {
    if (isSilent(error, socket)) return;
    // Further data of a refused client is not HTTP to the parser, either.
    if (refused.has(socket) && error.code?.startsWith('HPE_')) return;
    refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy(error);
      return;
    }
    const head = firstHead(error, socket);
    if (head && isOnlyMethodUnknown(head)) answer(router(methodOf(head), head.rawPath).handler, head, socket);
    else refuseNext(problemOf(error), socket, head);
  });
  server.on('connect', (request, socket: Socket) => {
    // Node has removed its own listener. Without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy());
    // Repeated fields are joined by a comma and a space, which a request ID cannot contain.
    const headers = request.headers as GatewayEvent['headers'];
    refuseNext(refuseInvalidHttp('CONNECT is not served'), socket, { ...UNREADABLE, headers });
  });

  /** A later packet may begin anywhere in a request. */
  function firstHead({ rawPacket }: ClientError, socket: Socket): RawHead | undefined {
    const isFirst = rawPacket?.length === socket.bytesRead && !exchanges.has(socket);
    return isFirst ? rawHeadIn(rawPacket) : undefined;
  }

  function refuseNext(problem: Problem, socket: Socket, event: GatewayEvent = UNREADABLE): void {
    const refuse = refuseWith({ settings, log }, problem);
    const exchange = exchanges.get(socket);
    if (!exchange) answer(refuse, event, socket);
    // The fault is in the data after a complete request. That request is answered first.
    else if (exchange.request.complete) onceAnswered(exchange, () => answer(refuse, event, socket));
    else breakOff(problem, exchange, socket);
  }
}

/**
 * A connection that was opened ahead of need. Its client would take a 408 for the response to a request that it has
 * just sent.
 */
function isSilent({ code }: ClientError, socket: Socket): boolean {
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
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
function breakOff(problem: Problem, exchange: Exchange, socket: Socket): void {
  exchange.response.shouldKeepAlive = false;
  exchange.event.refuseBody(problem);
  // The response, sent or about to be sent, may wait for a moment for the end of the body.
  const end = () => exchange.response.headersSent && exchange.response.end();
  end();
  setTimeout(end, LINGER).unref();
  onceAnswered(exchange, () => socket.destroySoon());
}

function onceAnswered({ response }: Exchange, then: () => void): void {
  if (response.writableFinished) then();
  else response.once('finish', then);
}

function problemOf({ code, message }: ClientError): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseSlowRequest();
  if (code === 'HPE_HEADER_OVERFLOW') return refuseLargeHeaderFields();
  return refuseInvalidHttp(message);
}
