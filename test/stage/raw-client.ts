import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection that is abused, and what became of it. */
export type RawClient = Awaited<ReturnType<typeof rawClient>>;

/** Opens a connection to the service that sends any bytes, HTTP or not, and keeps what came. */
export async function rawClient(url: string, { isReading = true } = {}) {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let received = '';
  let isOver = false;
  socket.on('error', () => {});
  // A client that does not read notices only a reset, and no regular end.
  for (const end of ['end', 'close']) {
    socket.on(end, () => {
      isOver = true;
    });
  }
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  if (isReading) socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  else socket.pause();

  return {
    socket,
    send: (bytes: string | Buffer) => void socket.write(bytes),
    get received() {
      return received;
    },
    /** Whether the service has ended the connection. */
    get isOver() {
      return isOver || socket.destroyed;
    },
    /** The statuses of the answers that came; interim ones are left out. */
    statuses: () =>
      [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
        .map(([, status]) => Number(status))
        .filter((n) => n >= 200),
    /** Waits until the service ends the connection, for so many milliseconds at most. */
    async untilOver(milliseconds: number): Promise<boolean> {
      if (!isOver && !socket.destroyed) {
        const limit = AbortSignal.timeout(milliseconds);
        const over = ['end', 'close'].map((event) => once(socket, event, { signal: limit }));
        await Promise.race(over).catch(() => {});
        for (const ending of over) ending.catch(() => {});
      }
      return isOver || socket.destroyed;
    },
    halfClose: () => void socket.end(),
    abort: () => void socket.resetAndDestroy(),
  };
}

/** The text of a request. With a body it has the media type and the length of that JSON, unless the fields say otherwise. */
export function requestText(line: string, fields: Readonly<Record<string, string>>, body = ''): string {
  const ofBody = body && { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  const all = { Host: 'localhost', ...(ofBody || {}), ...fields };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${head.join('')}\r\n${body}`;
}
