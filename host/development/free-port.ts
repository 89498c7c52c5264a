import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

/** Finds a TCP port of 127.0.0.1 that nothing listens on: the first free one of `wished`, else any. */
export async function freePort(wished: readonly number[] = []): Promise<number> {
  for (const port of wished) {
    if (!(await isTaken(port))) return port;
  }
  return listenBriefly(0, '127.0.0.1');
}

/** Tells whether something listens on `port` of `host` already. */
export async function isTaken(port: number, host = '127.0.0.1'): Promise<boolean> {
  try {
    await listenBriefly(port, host);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  }
}

async function listenBriefly(port: number, host: string): Promise<number> {
  const server = createServer().listen({ port, host, exclusive: true });
  await once(server, 'listening');
  const taken = (server.address() as AddressInfo).port;
  server.close();
  await once(server, 'close');
  return taken;
}
