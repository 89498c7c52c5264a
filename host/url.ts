import { isIPv6 } from 'node:net';

/** A server that listens on every address is reached at the loopback address. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/** The URL of a server that listens on `host`, which is an address or a name. */
export function urlOf(host: string, port: number): string {
  // The zone of a link-local address begins with a percent sign (RFC 6874), which URL does not support.
  const authority = isIPv6(host) ? `[${host.replace('%', '%25')}]` : host;
  const name = URL.parse(`http://${authority}`)?.hostname ?? authority;
  return `http://${LOOPBACK[name] ?? name}:${port}`;
}
