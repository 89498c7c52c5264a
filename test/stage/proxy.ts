import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../host/development/free-port.ts';

/** What is done to the bytes on their way, for one direction of one connection. */
type Interference = () => Transform;

/** Where a proxy passes connections on to. */
type Target = { readonly host: string; readonly port: number };

/** A proxy in front of PostgreSQL, of the key server or of the service. */
export type TcpProxy = Awaited<ReturnType<typeof startProxy>>;

/**
 * Starts a proxy on a port of 127.0.0.1. It passes everything on, until told to `stall` (connections stay, nothing moves;
 * new ones are accepted and hang), `reset` (every connection is cut, old and new), `close` (every connection is ended in
 * order, old and new) or `refuse` (the port is closed, the connections too); `pass` makes it well again, for connections
 * that come after. `forget` lets new connections pass, while nothing moves any more on those that are there: both ends
 * take them for alive. `answersThrough` and `requestsThrough` interfere with the bytes of connections that come after.
 */
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
    // Bytes that come in small pieces are not to wait for each other.
    return socket
      .setNoDelay()
      .on('error', () => {})
      .on('close', () => sockets.delete(socket));
  }

  async function listen(listenOn: number): Promise<number> {
    if (server.listening) return listenOn;
    server.listen(listenOn, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  function cutAll(): void {
    for (const socket of sockets) socket.resetAndDestroy();
  }

  function endAll(): void {
    for (const socket of sockets) socket.end();
  }

  const ownPort = await listen(await freePort());
  return {
    host: '127.0.0.1',
    port: ownPort,
    /** How many connections it has taken so far. */
    get accepted() {
      return accepted;
    },
    /** How many connections to the service or from it are open. */
    get open() {
      return sockets.size;
    },
    async pass() {
      // What stalled has lost its place: it is cut, as a firewall that forgot it would.
      if (mode !== 'pass' || onAnswers || onRequests) cutAll();
      mode = 'pass';
      onAnswers = undefined;
      onRequests = undefined;
      await listen(ownPort);
    },
    stall() {
      mode = 'stall';
      for (const socket of sockets) socket.unpipe().pause();
    },
    forget() {
      // Not even that one end closes is passed on.
      for (const socket of sockets) socket.unpipe().pause().removeAllListeners('close');
    },
    reset() {
      mode = 'reset';
      cutAll();
    },
    close() {
      mode = 'close';
      endAll();
    },
    /** Connections that come after lead to this server. */
    leadTo(next: Target) {
      target = next;
    },
    /** Closes the port; the connections that are there live on. */
    async refuseMore() {
      await new Promise((resolve) => {
        server.close(resolve);
        // `close` waits for the connections, the port is closed at once.
        setImmediate(resolve);
      });
    },
    /** Opens the port again, without an end to what interferes. */
    accept: () => listen(ownPort),
    async refuse() {
      const closed = once(server, 'close');
      server.close();
      cutAll();
      await closed;
    },
    /** What is sent to the caller goes through this, from the next connection on. */
    answersThrough(interference: Interference) {
      onAnswers = interference;
    },
    /** What the caller sends goes through this, from the next connection on. */
    requestsThrough(interference: Interference) {
      onRequests = interference;
    },
    /** Cuts the connections that are there; new ones are as the proxy is now. */
    cutAll,
    /** Ends the connections that are there in order; new ones are as the proxy is now. */
    endAll,
    async stop() {
      if (server.listening) await this.refuse();
      cutAll();
    },
  };
}

/** Passes every chunk on so many milliseconds late. */
export const late = (milliseconds: number) => () =>
  through(async (chunk, push) => {
    await sleep(milliseconds);
    push(chunk);
  });

/** Passes the first chunk on so many milliseconds late, and all others at once. */
export const lateAtFirst = (milliseconds: number) => () => {
  let wait = milliseconds;
  return through(async (chunk, push) => {
    if (wait > 0) await sleep(wait);
    wait = 0;
    push(chunk);
  });
};

/** Passes one byte at a time, with a pause of so many milliseconds after each. */
export const byteByByte = (milliseconds: number) => () =>
  through(async (chunk, push) => {
    for (const byte of chunk) {
      push(Buffer.of(byte));
      await sleep(milliseconds);
    }
  });

/** Passes so many bytes, then cuts the connection. */
export const cutAfter = (bytes: number) => () => {
  let left = bytes;
  return through(async (chunk, push) => {
    push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) throw new Error('cut');
  });
};

/** A transform of whole chunks; what it throws cuts the connection. */
export function through(pass: (chunk: Buffer, push: (bytes: Buffer) => void) => Promise<void>): Transform {
  return new Transform({
    transform(chunk, _encoding, done) {
      pass(chunk, (bytes) => void this.push(bytes)).then(() => done(), done);
    },
  });
}
