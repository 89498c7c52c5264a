import { connect } from 'node:net';
import type { RawRequest } from '../../stage/raw-request.ts';

/** A response as it was received. */
export type HttpResponse = {
  readonly status: number;
  /** In order, with repeated fields as they are. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly content: Buffer;
  /** What only a socket shows. A function's result has none of it: API Gateway writes the message. */
  readonly onSocket?: {
    readonly statusLine: string;
    /** In milliseconds of the clock. */
    readonly receivedAt: number;
    /** What came for a second request on the same connection, if one was sent. */
    readonly afterwards?: 'a response' | 'the end' | 'other bytes';
  };
};

/** A request and its response. */
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

const INTERIM = /^HTTP\/1\.1 1\d\d /;

/**
 * Sends a request over a connection of its own, and then a second one, which shows whether the first response ended
 * where it said, and whether the connection persists.
 */
export async function sendOnSocket(url: string, request: RawRequest): Promise<HttpResponse> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  // A reset ends the reading as an end does.
  socket.on('error', () => {});
  let received = Buffer.alloc(0);
  let wake = () => {};
  let isOver = false;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  for (const event of ['end', 'close']) {
    socket.on(event, () => {
      isOver = true;
      wake();
    });
  }
  async function until(isEnough: () => boolean): Promise<void> {
    while (!isOver && !isEnough()) await new Promise<void>((resolve) => (wake = resolve));
  }

  socket.write(requestBytes(request));
  const headEnd = () => received.indexOf('\r\n\r\n');
  await until(() => headEnd() >= 0);
  while (INTERIM.test(received.toString('latin1'))) {
    received = received.subarray(headEnd() + 4);
    await until(() => headEnd() >= 0);
  }
  const receivedAt = Date.now();
  const end = headEnd();
  const [statusLine = '', ...lines] = received.subarray(0, Math.max(end, 0)).toString('latin1').split('\r\n');
  const status = Number(/^\S+ (\d{3})/.exec(statusLine)?.[1]);
  const fields = lines.map(parseLine);
  received = received.subarray(end + 4);
  const length = contentLengthOf(request.method, status, fields);
  await until(() => received.length >= length);
  const content = received.subarray(0, length);
  received = received.subarray(content.length);

  if (!isOver) {
    socket.write(
      requestBytes({
        method: 'GET',
        target: '/health',
        fields: [['Connection', 'close']],
        body: Buffer.alloc(0),
      }),
    );
  }
  await until(() => false);
  socket.destroy();
  const isResponse = /^HTTP\/1\.1 200 OK\r\n/.test(received.toString('latin1'));
  const afterwards = received.length === 0 ? 'the end' : isResponse ? 'a response' : 'other bytes';
  return { status, fields, content, onSocket: { statusLine, receivedAt, afterwards } };
}

function requestBytes({ method, target, fields, body }: RawRequest): Buffer {
  const length: [string, string][] = body.length > 0 ? [['Content-Length', String(body.length)]] : [];
  const all = [['Host', 'service.test'], ...fields, ...length];
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`, 'latin1'), body]);
}

/** A line without a colon is a name with an empty value, which no rule of names accepts. */
function parseLine(line: string): readonly [string, string] {
  const at = line.indexOf(':');
  return at < 0 ? [`${line} `, ''] : [line.slice(0, at), line.slice(at + 1).replace(/^[ \t]|[ \t]$/g, '')];
}

/** RFC 9112 section 6.3. */
function contentLengthOf(method: string, status: number, fields: HttpResponse['fields']): number {
  if (method === 'HEAD' || status === 204 || status === 304) return 0;
  const [, length] = fields.find(([name]) => name.toLowerCase() === 'content-length') ?? [];
  return length === undefined ? Number.POSITIVE_INFINITY : Number(length);
}
