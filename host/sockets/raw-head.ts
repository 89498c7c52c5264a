import { maxHeaderSize } from 'node:http';
import type { GatewayEvent } from '../../lib/http/gateway.ts';
import { encodePath } from '../../lib/http/path.ts';
import { splitTarget } from '../request-event.ts';

/** A request as the event that API Gateway would have made of it, from the part of its head that has arrived. */
export type RawHead = GatewayEvent & { readonly httpVersion: string };

/** A request of which nothing can be read. */
export const UNREADABLE: GatewayEvent = {
  rawPath: '/',
  rawQueryString: '',
  headers: {},
  requestContext: { http: { method: '' } },
  isBase64Encoded: false,
};

/** RFC 9112 section 3: a method, which is a token; a target in origin or absolute form; a version. */
const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) ((?:https?:\/)?\/[!-~]*) HTTP\/(1\.[01])$/;

/** Reads the request at the beginning of a packet; undefined unless it begins with a well-formed request line. */
export function parseRawHead(packet: Buffer): RawHead | undefined {
  // A line without its end may continue in the next packet.
  const [requestLine = '', ...lines] = packet.toString('latin1').split('\r\n').slice(0, -1);
  const [, method, target, httpVersion] = REQUEST_LINE.exec(requestLine) ?? [];
  if (!method || !target || !httpVersion || target.length > maxHeaderSize) return undefined;
  const [path, query] = splitTarget(target);
  return {
    ...UNREADABLE,
    rawPath: encodePath(path),
    rawQueryString: query,
    headers: singleFields(lines),
    requestContext: { http: { method } },
    httpVersion,
  };
}

/** The fields that occur once. A repeated field is left out, because it is unknown which value was meant. */
function singleFields(lines: readonly string[]): Record<string, string> {
  const end = lines.indexOf('');
  const byName = Map.groupBy(end < 0 ? lines : lines.slice(0, end), (line) =>
    line.split(':', 1).join().toLowerCase(),
  );
  return Object.fromEntries(
    [...byName].flatMap(([name, [line = '', ...more]]) =>
      more.length === 0 ? [[name, line.slice(name.length + 1).trim()]] : [],
    ),
  );
}
