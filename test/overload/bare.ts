import { startServer } from '../benchmark/targets/start.ts';
import { USERS, wireOf } from '../lab/load/wire.ts';
import type { LoadedService } from './service.ts';

/** With the two settings of node:http that the service uses: a flat array of headers, and no body of requests without one. */
const PROGRAM = `
import { createServer } from 'node:http';
const headers = ['Content-Type', 'application/json', 'Content-Length', '20'];
createServer({ optimizeEmptyRequests: true }, (_request, response) => {
  response.writeHead(200, headers).end('{"status":"healthy"}');
}).listen(process.env.PORT, '127.0.0.1');`;

/** In place of the service a bare node:http server that answers each request at once: what connections cost by themselves. */
export async function startBare(): Promise<LoadedService & { stop(): Promise<void> }> {
  const server = await startServer((port) => ({
    command: process.execPath,
    options: ['--max-semi-space-size=16', '--input-type=module', '--eval', PROGRAM],
    folder: import.meta.dirname,
    variables: { PORT: String(port) },
  }));
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests: [wireOf({ method: 'GET', target: USERS })],
    requestsOf: () => [],
    sign: async () => '',
    events: () => [],
    isAlive: server.isAlive,
    processId: server.processId,
    stop: server.stop,
  };
}
