import { once } from 'node:events';
import { isIPv6, type Server } from 'node:net';
import type { Settings } from '../lib/settings/settings.ts';

/**
 * Maximum number of connections that wait to be accepted; the system may set a lower limit. With more, clients have
 * disconnected when they are accepted (test/overload/README.md). With fewer, a thousand callers could not connect at once.
 */
export const BACKLOG = 1024;

/** A server that listens on every address is reached at the loopback address. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/**
 * Listens on `host`, which is an address or a name. Resolves when connections are accepted.
 *
 * @throws an error that `listenFault` explains if the server cannot listen there
 */
export async function listen(server: Server, { host, port }: Pick<Settings, 'host' | 'port'>): Promise<void> {
  server.listen({ host, port, backlog: BACKLOG });
  await once(server, 'listening');
}

/** Why the service cannot listen, and the setting to look at; undefined for an error of another kind. */
export function listenFault({ code = '', syscall = '' }: NodeJS.ErrnoException): string | undefined {
  if (!['listen', 'getaddrinfo'].includes(syscall)) return undefined;
  const setting = ['EADDRINUSE', 'EACCES'].includes(code)
    ? 'SVC_PORT, which accepts a free port that this user may listen on, and SVC_HOST'
    : 'SVC_HOST, which accepts an address of this machine';
  return `The service cannot listen: ${code}. See ${setting}.`;
}

/** The URL of a server that listens on `host`, which is an address or a name. */
export function urlOf(host: string, port: number): string {
  // The zone of a link-local address begins with a percent sign (RFC 6874), which URL does not support.
  const authority = isIPv6(host) ? `[${host.replace('%', '%25')}]` : host;
  const name = URL.parse(`http://${authority}`)?.hostname ?? authority;
  return `http://${LOOPBACK[name] ?? name}:${port}`;
}
