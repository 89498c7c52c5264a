import { Agent, METHODS, request as open } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { HttpResponse } from '../http/rules/exchange.ts';
import { pairsOf, type RawRequest } from '../stage/raw-request.ts';

const agent = new Agent({ keepAlive: true });

/**
 * Sends a request. Connections are used again, because a new one costs more than the request. After another request, a
 * method that Node's parser does not know may be 400, so that it has a connection of its own.
 */
export function send(url: string, { method, target, fields, body }: RawRequest): Promise<HttpResponse> {
  const { hostname: host, port } = new URL(url);
  const length: [string, string][] = body.length > 0 ? [['Content-Length', String(body.length)]] : [];
  const headers = [['Host', 'service.test'], ...fields, ...length].flat();
  return new Promise((resolve, reject) => {
    const sent = open(
      { host, port, method, path: target, headers, agent: METHODS.includes(method) && agent },
      async (response) => {
        const { statusCode: status = 0, statusMessage, httpVersion, rawHeaders } = response;
        const statusLine = `HTTP/${httpVersion} ${status} ${statusMessage}`;
        const onSocket = { statusLine, receivedAt: Date.now() };
        resolve({ status, fields: pairsOf(rawHeaders), content: await buffer(response), onSocket });
      },
    );
    sent.on('error', reject).end(body);
  });
}
