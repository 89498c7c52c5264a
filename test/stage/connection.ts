import { once } from 'node:events';
import { connect } from 'node:net';
import { createServiceResponse, type ServiceResponse } from './service-response.ts';

const TIMEOUT = 15_000;
const HEAD_END = '\r\n\r\n';

/** A connection to the service on which a test can send any bytes, HTTP or not. */
export async function connectTo(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let wasReset = false;
  socket.on('error', () => {
    wasReset = true;
  });
  await once(socket, 'connect');
  let received = Buffer.alloc(0);
  let isEnded = false;
  let wake = () => {};
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  for (const end of ['end', 'close']) {
    socket.on(end, () => {
      isEnded = true;
      wake();
    });
  }

  async function until<Value>(found: () => Value | undefined, wanted: string): Promise<Value> {
    const deadline = Date.now() + TIMEOUT;
    for (;;) {
      const value = found();
      if (value !== undefined) return value;
      if (isEnded) throw new Error(`the connection ended before ${wanted}, after: ${received}`);
      if (Date.now() > deadline) throw new Error(`no ${wanted} in time, only: ${received}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, 1000).unref();
      });
    }
  }

  return {
    send(content: string | Buffer): void {
      socket.write(content);
    },
    /** The next complete response. A response to HEAD has no content, with any Content-Length. */
    async answer({ toHead = false } = {}): Promise<ServiceResponse> {
      const { answer, length } = await until(() => firstAnswerIn(received, toHead), 'a complete response');
      received = received.subarray(length);
      return answer;
    },
    /** Resolves when the service has closed, with the bytes that no answer() read. */
    async rest(): Promise<string> {
      await until(() => (isEnded ? true : undefined), 'the end');
      socket.destroy();
      return received.toString();
    },
    /** Whether the service has reset the connection. */
    get wasReset() {
      return wasReset;
    },
    /** Whether no bytes have arrived that no answer() read. */
    get isQuiet() {
      return received.length === 0;
    },
    /** Ends its own side, and continues to read. */
    halfClose(): void {
      socket.end();
    },
    /** Disconnects without a message. */
    abort(): void {
      socket.resetAndDestroy();
    },
    close(): void {
      socket.destroy();
    },
  };
}

/** Sends `content` on a connection of its own and reads one response. The service must close the connection after it. */
export async function lastAnswer(url: string, content: string | Buffer): Promise<ServiceResponse> {
  const connection = await connectTo(url);
  connection.send(content);
  const answer = await connection.answer({ toHead: content.toString().startsWith('HEAD ') });
  const rest = await connection.rest();
  if (rest !== '') throw new Error(`there was more than one response: ${rest}`);
  return answer;
}

/** A request in HTTP/1.1. Header fields may be repeated. */
export function written(
  line: string,
  fields: readonly (readonly [name: string, value: string])[] = [],
  body: string | Buffer = '',
): Buffer {
  const head = [`${line} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}${HEAD_END}`, 'latin1'), Buffer.from(body)]);
}

function firstAnswerIn(bytes: Buffer, toHead: boolean) {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  const headers = Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
    }),
  );
  const start = end + HEAD_END.length;
  const hasContent = !toHead && status >= 200 && status !== 204 && status !== 304;
  const length = start + (hasContent ? Number(headers['content-length']) : 0);
  if (!(bytes.length >= length)) return undefined;
  return { answer: createServiceResponse(status, headers, bytes.subarray(start, length)), length };
}
