import { type IncomingMessage, METHODS, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { GatewayEvent, GatewayResult, Handler } from '../../lib/http/gateway.ts';
import { refuseWith } from '../../lib/http/middleware-stack.ts';
import type { Problem } from '../../lib/http/problem.ts';
import { refuseInvalidHttp, refuseLargeHeaderFields, refuseSlowRequest } from '../../lib/http/refusals.ts';
import type { Service } from '../../lib/service.ts';
import type { Router } from '../router.ts';
import type { CurrentRequest, CurrentRequests } from './current-requests.ts';
import { parseRawHead, type RawHead, UNREADABLE } from './raw-head.ts';

/** In milliseconds: how long a refused client may continue to send before its connection is cut. */
const LINGER = 1000;

type ClientError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

/** Responds to requests that Node's parser refuses by itself, but never to a request that already has a response. */
export class ClientErrors {
  readonly #service: Pick<Service, 'settings' | 'log'>;
  readonly #router: Router;
  readonly #currentRequests: CurrentRequests;
  readonly #refused = new WeakSet<Socket>();

  constructor(service: Pick<Service, 'settings' | 'log'>, router: Router, currentRequests: CurrentRequests) {
    this.#service = service;
    this.#router = router;
    this.#currentRequests = currentRequests;
  }

  /** Responds to those of this server from now on. */
  answer(server: Server): void {
    server.on('clientError', (error: ClientError, socket: Socket) => this.#onError(error, socket));
    server.on('connect', (request, socket: Socket) => this.#onConnect(request, socket));
  }

  #onError(error: ClientError, socket: Socket): void {
    if (isSilent(error, socket)) return;
    // Further data of a refused client is not HTTP to the parser, either.
    if (this.#refused.has(socket) && error.code?.startsWith('HPE_')) return;
    this.#refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy(error);
      return;
    }
    const head = this.#firstHead(error, socket);
    if (head && isOnlyMethodUnknown(head))
      answer(this.#router.find(methodOf(head), head.rawPath).handler, head, socket);
    else this.#refuseNext(problemOf(error), socket, head);
  }

  #onConnect(request: IncomingMessage, socket: Socket): void {
    // Node has removed its own listener. Without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy());
    // Repeated fields are joined by a comma and a space, which a request ID cannot contain.
    const headers = request.headers as GatewayEvent['headers'];
    this.#refuseNext(refuseInvalidHttp('CONNECT is not served'), socket, { ...UNREADABLE, headers });
  }

  /** A later packet may begin anywhere in a request. */
  #firstHead({ rawPacket }: ClientError, socket: Socket): RawHead | undefined {
    const isFirst = rawPacket?.length === socket.bytesRead && !this.#currentRequests.has(socket);
    return isFirst ? parseRawHead(rawPacket) : undefined;
  }

  #refuseNext(problem: Problem, socket: Socket, event: GatewayEvent = UNREADABLE): void {
    const refuse = refuseWith(this.#service, problem);
    const current = this.#currentRequests.get(socket);
    if (!current) answer(refuse, event, socket);
    // The fault is in the data after a complete request. That request is answered first.
    else if (current.request.complete) onceAnswered(current, () => answer(refuse, event, socket));
    else breakOff(problem, current, socket);
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
function breakOff(problem: Problem, current: CurrentRequest, socket: Socket): void {
  const { response } = current;
  response.shouldKeepAlive = false;
  current.refuseBody(problem);
  // The response, sent or about to be sent, may wait for a moment for the end of the body.
  const end = () => response.headersSent && response.end();
  end();
  setTimeout(end, LINGER).unref();
  onceAnswered(current, () => socket.destroySoon());
}

function onceAnswered({ response }: CurrentRequest, then: () => void): void {
  if (response.writableFinished) then();
  else response.once('finish', then);
}

function problemOf({ code, message }: ClientError): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseSlowRequest();
  if (code === 'HPE_HEADER_OVERFLOW') return refuseLargeHeaderFields();
  return refuseInvalidHttp(message);
}
