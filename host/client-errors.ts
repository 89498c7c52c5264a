import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { logProblem } from '../lib/observability/app-error.ts';
import { Problem, problemDocument, problemHeaders } from '../lib/problem.ts';
import { withinRequest } from '../lib/request-scope.ts';
import type { Service } from '../lib/service.ts';
import type { RequestEvent } from './gateway-adapter.ts';

/** The request that a connection is busy with. */
export type Exchange = {
  readonly event: RequestEvent;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
};

/** How long a refused client may go on sending before its connection is cut; in milliseconds. */
const LINGER = 1000;

type ClientError = Error & { readonly code?: string };

/** Answers with a problem what Node's parser refuses by itself, and never a request that has an answer already. */
export function answerClientErrors(
  server: Server,
  service: Pick<Service, 'settings' | 'log'>,
  exchanges: WeakMap<Socket, Exchange>,
): void {
  server.on('clientError', (error: ClientError, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy(error);
      return;
    }
    refuseNext(problemOf(error), socket);
  });
  server.on('connect', (_, socket: Socket) => write(notHttp('CONNECT is not served'), socket));

  function refuseNext(problem: Problem, socket: Socket): void {
    const exchange = exchanges.get(socket);
    if (!exchange) write(problem, socket);
    // The fault is in what follows a whole request: that one is answered first.
    else if (exchange.request.complete) onceAnswered(exchange, () => write(problem, socket));
    else breakOff(problem, exchange, socket);
  }

  function write(problem: Problem, socket: Socket): void {
    if (!socket.writable) return;
    const requestId = randomUUID();
    withinRequest({ requestId }, () => logProblem(service.log, problem, '/'));
    const body = JSON.stringify(problemDocument(problem, '/'));
    const headers = {
      ...problemHeaders(problem),
      'X-Content-Type-Options': 'nosniff',
      [service.settings.requestIdHeader]: requestId,
      Date: new Date().toUTCString(),
      Connection: 'close',
      'Content-Length': Buffer.byteLength(body),
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const { title } = problemDocument(problem, '/');
    socket.end([`HTTP/1.1 ${problem.status} ${title}`, ...lines, '', body].join('\r\n'));
    socket.resume();
    setTimeout(() => socket.destroy(), LINGER).unref();
  }
}

/** The request's own answer may be out already, and it has only one. */
function breakOff(problem: Problem, exchange: Exchange, socket: Socket): void {
  exchange.response.shouldKeepAlive = false;
  exchange.event.refuseBody(problem);
  onceAnswered(exchange, () => socket.destroySoon());
}

function onceAnswered({ response }: Exchange, then: () => void): void {
  if (response.writableFinished) then();
  else response.once('finish', then);
}

function problemOf({ code, message }: ClientError): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem('request_timeout_error', { detail: 'The request took too long to arrive.' });
  if (code === 'HPE_HEADER_OVERFLOW')
    return new Problem('request_header_fields_too_large_error', {
      detail: 'The header fields are too large.',
    });
  return notHttp(message);
}

function notHttp(reason: string): Problem {
  return new Problem('bad_request_error', { reason, detail: 'The request is not valid HTTP.' });
}
