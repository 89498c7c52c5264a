import { connectTo, written } from '../../stage/connection.ts';
import type { HttpResponse, RawRequest } from '../../stage/raw-request.ts';

export type HttpExchange = {
  readonly request: RawRequest;
  readonly response: HttpResponse;
  /** The response to the same request as a GET without preconditions, if the response is a 304 or one to HEAD. */
  readonly plain?: HttpResponse;
};

/** The request whose response a 304 or a response to HEAD is compared with. */
export function asPlainGet(request: RawRequest): RawRequest {
  return { ...request, method: 'GET', fields: request.fields.filter(([name]) => !/^if-/i.test(name)) };
}

const HOST = ['Host', 'service.test'] as const;

/**
 * Sends a request over a connection of its own, and then a second one, which shows whether the first response ended
 * where it said, and whether the connection persists.
 */
export async function sendOnSocket(
  url: string,
  { method, target, fields, body }: RawRequest,
): Promise<HttpResponse> {
  const connection = await connectTo(url);
  const length: RawRequest['fields'] = body.length > 0 ? [['Content-Length', String(body.length)]] : [];
  connection.send(written(`${method} ${target}`, [HOST, ...fields, ...length], body));
  let response = await connection.message({ toHead: method === 'HEAD' });
  while (response.status < 200) response = await connection.message({ toHead: method === 'HEAD' });
  if (!connection.isOver) connection.send(written('GET /health', [HOST, ['Connection', 'close']]));
  const rest = await connection.rest();
  const isResponse = rest.startsWith('HTTP/1.1 200 OK\r\n');
  const afterwards = rest === '' ? 'the end' : isResponse ? 'a response' : 'other bytes';
  const { status, statusLine, content } = response;
  return { status, fields: response.fields, content, onSocket: { statusLine, afterwards } };
}
