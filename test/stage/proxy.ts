import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../host/development/free-port.ts';
import { listen } from './listening.ts';

/** A change of the bytes in one direction of one connection. */
type Interference = () => Transform;

type Target = { readonly host: string; readonly port: number };

export type TcpProxy = Awaited<ReturnType<typeof startProxy>>;

/** Starts a proxy on a port of 127.0.0.1. It forwards everything until one of its functions brings a fault about. */
export async function startProxy(first: Target) {
  let target = first;
  let mode: 'pass' | 'stall' | 'reset' | 'close' = 'pass';
  let onAnswers: Interference | undefined;
  let onRequests: Interference | undefined;
  const sockets = new Set<Socket>();
  let accepted = 0;

  const server = createServer((client) => {
    accepted += 1;
    keep(client);
    if (mode === 'reset') client.resetAndDestroy();
    else if (mode === 'close') client.end();
    else if (mode === 'stall') client.pause();
    else join(client, keep(connect({ host: target.host, port: target.port })));
  });

  function join(client: Socket, target: Socket): void {
    flow(client, target, onRequests);
    flow(target, client, onAnswers);
    client.on('close', () => target.destroy());
    target.on('close', () => client.destroy());
  }

  function flow(from: Socket, to: Socket, interference?: Interference): void {
    if (!interference) from.pipe(to);
    else
      from
        .pipe(interference())
        .on('error', () => to.resetAndDestroy())
        .pipe(to);
  }

  function keep(socket: Socket): Socket {
    sockets.add(socket);
    // Bytes that arrive in small pieces must not wait for each other.
    return socket
      .setNoDelay()
      .on('error', () => {})
      .on('close', () => sockets.delete(socket));
  }

  const ownPort = await freePort();
  const accept = async () => {
    if (!server.listening) await listen(server, ownPort);
  };

  function cutAll(): void {
    for (const socket of sockets) socket.resetAndDestroy();
  }

  function endAll(): void {
    for (const socket of sockets) socket.end();
  }

  await accept();
  return {
    host: '127.0.0.1',
    port: ownPort,
    get accepted() {
      return accepted;
    },
    /** Number of open connections on both sides. */
    get open() {
      return sockets.size;
    },
    /** Later connections work again. */
    async pass() {
      // A stalled connection is reset, as by a firewall that forgot it.
      if (mode !== 'pass' || onAnswers || onRequests) cutAll();
      mode = 'pass';
      onAnswers = undefined;
      onRequests = undefined;
      await accept();
    },
    /** Connections stay, nothing moves, and new ones are accepted and hang. */
    stall() {
      mode = 'stall';
      for (const socket of sockets) socket.unpipe().pause();
    },
    /** Nothing moves on existing connections, which both ends consider alive. New ones work. */
    forget() {
      // Not even the end of one side is forwarded.
      for (const socket of sockets) socket.unpipe().pause().removeAllListeners('close');
    },
    /** Resets existing and later connections. */
    reset() {
      mode = 'reset';
      cutAll();
    },
    /** Ends existing and later connections in order. */
    close() {
      mode = 'close';
      endAll();
    },
    /** Later connections lead to this address. */
    leadTo(next: Target) {
      target = next;
    },
    /** Opens the port again, and keeps the changes of bytes. */
    accept,
    /** Closes the port and the connections. */
    async refuse() {
      const closed = once(server, 'close');
      server.close();
      cutAll();
      await closed;
    },
    /** Bytes to the client pass through this, from the next connection on. */
    answersThrough(interference: Interference) {
      onAnswers = interference;
    },
    /** Bytes from the client pass through this, from the next connection on. */
    requestsThrough(interference: Interference) {
      onRequests = interference;
    },
    /** Resets the existing connections. The mode for new ones stays. */
    cutAll,
    /** Ends the existing connections in order. The mode for new ones stays. */
    endAll,
    async stop() {
      if (server.listening) await this.refuse();
      cutAll();
    },
  };
}

/** Delays the first chunk by this many milliseconds. */
export const lateAtFirst = (milliseconds: number) => () => {
  let wait = milliseconds;
  return through(async (chunk, push) => {
    if (wait > 0) await sleep(wait);
    wait = 0;
    push(chunk);
  });
};

/** A transform of complete chunks. If it throws, the connection is reset. */
export function through(pass: (chunk: Buffer, push: (bytes: Buffer) => void) => Promise<void>): Transform {
  return new Transform({
    transform(chunk, _encoding, done) {
      pass(chunk, (bytes) => void this.push(bytes)).then(() => done(), done);
    },
  });
}

/** The settings with which the service uses these hosts of PostgreSQL, or proxies, in this order. */
export const addressOf = (...targets: readonly Target[]) => ({
  SVC_POSTGRES_HOST: targets.map(({ host }) => host).join(),
  SVC_POSTGRES_PORT: targets.map(({ port }) => port).join(),
});
