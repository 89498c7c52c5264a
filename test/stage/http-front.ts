import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { RawAnswer, RawRequest } from './raw-request.ts';

/** An HTTP server on a port of 127.0.0.1 that responds with the result of `send`, or with 502 if it throws. */
export async function startHttpFront(send: (request: RawRequest) => Promise<RawAnswer | 'reset'>) {
  const server = createServer(async (request, response) => {
    const { method = '', url = '', rawHeaders } = request;
    const fields = Array.from({ length: rawHeaders.length / 2 }, (_, n) => {
      const [name = '', value = ''] = rawHeaders.slice(2 * n);
      return [name, value] as const;
    });
    const body = await buffer(request);
    try {
      const answer = await send({ method, target: url, fields, body });
      if (answer === 'reset') return void request.socket.resetAndDestroy();
      response.writeHead(answer.status, answer.headers as Record<string, string>);
      response.end(answer.body);
    } catch {
      response.writeHead(502).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
