import { join } from 'node:path';
import { startServer } from '../benchmark/targets/start.ts';
import type { startStage } from './stage.ts';

const FOLDER = join(import.meta.dirname, '../benchmark/peers');

/** In place of the service a bare node:http server that answers each request at once: what connections cost by themselves. */
export async function startBare(): Promise<Awaited<ReturnType<typeof startStage>>> {
  const server = await startServer((port) => ({
    command: process.execPath,
    options: ['--max-semi-space-size=16', 'hello-tuned.mjs'],
    folder: FOLDER,
    variables: { PORT: String(port) },
  }));
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests: ['GET /api/v1/users/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
    requestsOf: () => [],
    sign: async () => '',
    events: () => [],
    isAlive: server.isAlive,
    processId: server.processId,
    stop: server.stop,
  };
}
