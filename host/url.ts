import { isIPv6 } from 'node:net';

/** What listens on every address is reached at this machine's own. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/** The URL to reach a server at that listens on `host`, which is an address or a name. */
export function urlOf(host: string, port: number): string {
  // The zone of a link-local address begins with a percent sign (RFC 6874), which URL does not know.
  const authority = isIPv6(host) ? `[${host.replace('%', '%25')}]` : host;
  const name = URL.parse(`http://${authority}`)?.hostname ?? authority;
  return `http://${LOOPBACK[name] ?? name}:${port}`;
}
