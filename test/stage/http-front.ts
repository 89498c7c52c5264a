import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listen } from './listening.ts';
import { pairsOf, type RawRequest, type RawResponse } from './raw-request.ts';

/** An HTTP server on a port of 127.0.0.1 that responds with the result of `send`, or with 502 if it throws. */
export async function startHttpFront(send: (request: RawRequest) => Promise<RawResponse | 'reset'>) {
  const server = createServer(async (request, response) => {
    const { method = '', url = '', rawHeaders } = request;
    const body = await buffer(request);
    try {
      const answer = await send({ method, target: url, fields: pairsOf(rawHeaders), body });
      if (answer === 'reset') return void request.socket.resetAndDestroy();
      response.writeHead(answer.status, answer.headers as Record<string, string>);
      response.end(answer.body);
    } catch {
      response.writeHead(502).end();
    }
  });
  return {
    url: (await listen(server)).url,
    stop: async () => server.close().closeAllConnections(),
  };
}
