import { once } from 'node:events';
import { type AddressInfo, connect, type Server } from 'node:net';

/** Has a server listen on a port of 127.0.0.1, by default a free one. Resolves with the port and the URL. */
export async function listen(
  server: Server,
  wanted = 0,
): Promise<{ readonly port: number; readonly url: string }> {
  server.listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}` };
}

/** Whether a server accepts connections at this port of 127.0.0.1. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}
