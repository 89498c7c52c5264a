/** A request, before it is written for the wire. */
export type Request = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly target: string;
  readonly token?: string;
  readonly body?: string;
};

export const USERS = '/api/v1/users/';

/** A request as HTTP/1.1 writes it. A body is JSON in ASCII, so it has as many bytes as characters. */
export function wireOf({ method, target, token, body }: Request): string {
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  const head = `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}`;
  if (body === undefined) return `${head}\r\n`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
