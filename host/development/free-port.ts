import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Finds a TCP port of 127.0.0.1 that nothing listens on: the first free one of `wished`, otherwise any port below those
 * that the system gives to outgoing connections. One of the latter may be taken at any time while nothing listens on
 * it.
 */
export async function freePort(wished: readonly number[] = []): Promise<number> {
  for (const port of [...wished, randomInt(20_000, 32_000)]) {
    if (!(await isTaken(port))) return port;
  }
  return freePort();
}

/** Whether something listens on `port` of `host` already. */
export async function isTaken(port: number, host = '127.0.0.1'): Promise<boolean> {
  try {
    await using server = createServer().listen({ port, host, exclusive: true });
    await once(server, 'listening');
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  }
}
