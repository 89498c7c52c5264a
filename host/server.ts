import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRefusingHandler } from '../lib/endpoint/middleware-stack.ts';
import { toProblem } from '../lib/http/problem.ts';
import { Exchange, type ExchangeParts } from './exchange.ts';
import { answerClientErrors, UNREADABLE } from './sockets/client-errors.ts';

/** Node's own limits. Slow clients are disconnected within 12 seconds. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  // `Connections` does the same at a lower cost.
  keepAliveTimeout: 0,
  // The service answers this case with a problem document.
  requireHostHeader: false,
  // Repeated headers are one value (RFC 9110 section 5.3), so that no token and no request ID looks like a single one.
  // Otherwise Node would keep only the first.
  joinDuplicateHeaders: true,
  // A request without a body gets no readable stream, which would double Node's time for it.
  optimizeEmptyRequests: true,
};

/** Creates the HTTP server. Each request becomes an event for its endpoint, and the result becomes the response. */
export function createHttpServer(parts: ExchangeParts): Server {
  const receive = (request: IncomingMessage, response: ServerResponse) => {
    try {
      new Exchange(request, response, parts).begin();
    } catch (defect) {
      // It would end the process.
      createRefusingHandler(
        parts.service,
        toProblem(defect),
      )(UNREADABLE)
        .then(({ statusCode, headers, body }) =>
          response.writeHead(statusCode, { ...headers, Connection: 'close' }).end(body),
        )
        .catch(() => response.destroy());
    }
  };
  const server = createServer(LIMITS, receive);
  // A caller that waits for 100 Continue gets it when its token has been accepted. Other expectations are ignored.
  server.on('checkContinue', receive);
  server.on('checkExpectation', receive);
  answerClientErrors(server, parts);
  parts.connections.watch(server, parts.service.settings.keepAliveTimeout * 1000);
  // A client that has sent everything, and says so, still gets its response, unless its request was queued.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
