import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../host/development/free-port.ts';

/**
 * Starts a proxy on a port of 127.0.0.1, in front of PostgreSQL for one. It passes everything on, until told to
 * `stall` (connections stay, nothing moves), `reset` (every connection is cut, old and new) or `refuse` (the
 * port is closed, the connections too); `pass` makes it well again, for connections that come after. `forget` lets new
 * connections pass, while nothing moves any more on those that are there: both ends take them for alive.
 */
export async function startProxy({ host, port }: { readonly host: string; readonly port: number }) {
  let mode: 'pass' | 'stall' | 'reset' = 'pass';
  const sockets = new Set<Socket>();
  let accepted = 0;

  const server = createServer((client) => {
    accepted += 1;
    keep(client);
    if (mode === 'reset') client.resetAndDestroy();
    else if (mode === 'stall') client.pause();
    else join(client, keep(connect({ host, port })));
  });

  function join(client: Socket, target: Socket): void {
    client.pipe(target).pipe(client);
    client.on('close', () => target.destroy());
    target.on('close', () => client.destroy());
  }

  function keep(socket: Socket): Socket {
    sockets.add(socket);
    return socket.on('error', () => {}).on('close', () => sockets.delete(socket));
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

  const ownPort = await listen(await freePort());
  return {
    host: '127.0.0.1',
    port: ownPort,
    /** How many connections it has taken so far. */
    get accepted() {
      return accepted;
    },
    async pass() {
      // What stalled has lost its place: it is cut, as a firewall that forgot it would.
      if (mode !== 'pass') cutAll();
      mode = 'pass';
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
    async refuse() {
      const closed = once(server, 'close');
      server.close();
      cutAll();
      await closed;
    },
    async stop() {
      if (server.listening) await this.refuse();
      cutAll();
    },
  };
}
