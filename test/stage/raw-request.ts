import { type Agent, request as send } from 'node:http';
import { buffer } from 'node:stream/consumers';

export type RawRequest = {
  readonly method: string;
  /** Path and query, encoded. */
  readonly target: string;
  /** Header fields, which may be repeated. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
};

/** The exact bytes of a response, with header names in lower case and in order. */
export type RawResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** A response as it was received. */
export type HttpResponse = {
  readonly status: number;
  /** In order, with repeated fields as they are. */
  readonly fields: RawRequest['fields'];
  readonly content: Buffer;
  /** What only a socket shows. A function's result has none of it: API Gateway writes the message. */
  readonly onSocket?: {
    readonly statusLine: string;
    /** What came for a second request on the same connection, if one was sent. */
    readonly afterwards?: 'a response' | 'the end' | 'other bytes';
  };
};

/** Sends a request over a connection of its own, or over one of an agent. */
export function exchange(
  url: string,
  { method, target, fields, body }: RawRequest,
  agent: Agent | false = false,
): Promise<HttpResponse> {
  const { hostname: host, port } = new URL(url);
  const length: [string, string][] = body.length > 0 ? [['Content-Length', String(body.length)]] : [];
  const headers = [['Host', 'service.test'], ...fields, ...length].flat();
  return new Promise((resolve, reject) => {
    const sent = send({ host, port, method, path: target, headers, agent }, async (response) => {
      const { statusCode: status = 0, statusMessage, httpVersion, rawHeaders } = response;
      const statusLine = `HTTP/${httpVersion} ${status} ${statusMessage}`;
      const onSocket = { statusLine };
      resolve({ status, fields: pairsOf(rawHeaders), content: await buffer(response), onSocket });
    });
    sent.on('error', reject).end(body);
  });
}

/** The same, in the comparable form. */
export async function sendTo(...request: Parameters<typeof exchange>): Promise<RawResponse> {
  const { status, fields, content } = await exchange(...request);
  return answer(status, fields, content.toString());
}

/** The comparable form of a response: without the headers of the connection, with the length of the body. */
export function answer(
  status: number,
  headers: Iterable<readonly [name: string, value: string]>,
  body: string,
): RawResponse {
  const lowerCase = [...headers].map(([name, value]) => [name.toLowerCase(), value] as const);
  const ofTheService = lowerCase.filter(([name]) => !['connection', 'date', 'keep-alive'].includes(name));
  const length: [string, string][] =
    status === 204 || status === 304 ? [] : [['content-length', String(Buffer.byteLength(body))]];
  const all = new Map([...length, ...ofTheService]);
  return { status, headers: Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1))), body };
}

/** The fields of Node's `rawHeaders`. */
export function pairsOf(raw: readonly string[]): RawRequest['fields'] {
  return Array.from({ length: raw.length / 2 }, (_, n) => [String(raw[2 * n]), String(raw[2 * n + 1])]);
}
