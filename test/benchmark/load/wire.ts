import type { Request } from '../workloads/workload.ts';

/** A request as it goes over the wire. */
export function wireOf({ method, target, token, body }: Request): string {
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  const head = `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}`;
  if (body === undefined) return `${head}\r\n`;
  // Bodies are ASCII: as many bytes as characters.
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
