import { once } from 'node:events';
import { connect } from 'node:net';
import { createServiceResponse, type ServiceResponse } from './service-response.ts';

const TIMEOUT_MS = 30_000;
const HEAD_END = '\r\n\r\n';

/** A connection to the service on which a test can send any bytes, HTTP or not. */
export type Connection = Awaited<ReturnType<typeof connectTo>>;

/** Connects. A client that does not read notices only a reset, and no regular end. */
export async function connectTo(url: string, { isReading = true } = {}) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let wasReset = false;
  let received = Buffer.alloc(0);
  let isEnded = false;
  const all: Buffer[] = [];
  let wake = () => {};
  socket.on('error', () => {
    wasReset = true;
  });
  for (const end of ['end', 'close']) {
    socket.on(end, () => {
      isEnded = true;
      wake();
    });
  }
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  if (!isReading) socket.pause();
  else
    socket.on('data', (chunk: Buffer) => {
      all.push(chunk);
      received = Buffer.concat([received, chunk]);
      wake();
    });

  const text = () => Buffer.concat(all).toString('latin1');

  async function until<Value>(found: () => Value | undefined, wanted: string): Promise<Value> {
    const deadline = Date.now() + TIMEOUT_MS;
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

  /** The next complete response. A response to HEAD has no content, with any Content-Length. */
  async function message({ toHead = false } = {}): Promise<Message> {
    const found = await until(() => firstMessageIn(received, toHead), 'a complete response');
    received = received.subarray(found.length);
    return found;
  }

  return {
    socket,
    send: (content: string | Buffer) => void socket.write(content),
    message,
    async answer(options: { toHead?: boolean } = {}): Promise<ServiceResponse> {
      const { status, fields, content } = await message(options);
      const headers = fields.map(([name, value]) => [name.toLowerCase(), value] as const);
      return createServiceResponse(status, Object.fromEntries(headers), content);
    },
    /** All bytes that came, each as a character. */
    get received() {
      return text();
    },
    /** The statuses of the responses that came, without interim ones. */
    statuses: () => Array.from(text().matchAll(/HTTP\/1\.1 ([2-5]\d\d) /g), ([, status]) => Number(status)),
    get isOver() {
      return isEnded || socket.destroyed;
    },
    /** Waits until the service ends the connection, for so many milliseconds at most. */
    async untilOver(milliseconds: number): Promise<boolean> {
      if (!isEnded && !socket.destroyed) {
        const limit = AbortSignal.timeout(milliseconds);
        const over = ['end', 'close'].map((event) => once(socket, event, { signal: limit }));
        await Promise.race(over).catch(() => {});
      }
      return isEnded || socket.destroyed;
    },
    /** Resolves when the service has closed, with the bytes that no answer() read. */
    async rest(): Promise<string> {
      await until(() => (isEnded ? true : undefined), 'the end');
      socket.destroy();
      return received.toString();
    },
    get wasReset() {
      return wasReset;
    },
    /** Whether no bytes have arrived that no answer() read. */
    get isQuiet() {
      return received.length === 0;
    },
    /** Ends its own side, and continues to read. */
    halfClose: () => void socket.end(),
    /** Disconnects without a message. */
    abort: () => void socket.resetAndDestroy(),
    close: () => void socket.destroy(),
  };
}

export async function connectAndSend(url: string, content: string | Buffer) {
  const connection = await connectTo(url);
  connection.send(content);
  return connection;
}

/**
 * Resolves when the service has received what was sent before, because it accepts connections in the order in which they
 * were opened.
 */
export async function untilReceived(url: string): Promise<void> {
  const connection = await connectAndSend(url, requestText('GET /health', {}));
  await connection.answer();
  connection.close();
}

/**
 * Sends `content` on a connection of its own and reads one response. The service must close the connection after it. The
 * client may end its own side before.
 */
export async function lastResponse(
  url: string,
  content: string | Buffer,
  { isHalfClosed = false } = {},
): Promise<ServiceResponse> {
  const connection = await connectAndSend(url, content);
  if (isHalfClosed) connection.halfClose();
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

/** The text of a request. With a body it has the media type and the length of that JSON, unless the fields say otherwise. */
export function requestText(line: string, fields: Readonly<Record<string, string>>, body = ''): string {
  const ofBody = body && { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  const all = { Host: 'localhost', ...(ofBody || {}), ...fields };
  return String(written(line, Object.entries(all), body));
}

/** A response as it came. `length` is that of the whole message. */
type Message = {
  readonly statusLine: string;
  readonly status: number;
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly content: Buffer;
  readonly length: number;
};

function firstMessageIn(bytes: Buffer, toHead: boolean): Message | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(statusLine)?.[1]);
  const fields = lines.map(parseLine);
  const start = end + HEAD_END.length;
  const hasContent = !toHead && status >= 200 && status !== 204 && status !== 304;
  const [, size] = fields.find(([name]) => /^content-length$/i.test(name)) ?? [];
  const length = start + (hasContent ? Number(size) : 0);
  if (!(bytes.length >= length)) return undefined;
  return { statusLine, status, fields, content: bytes.subarray(start, length), length };
}

/** A line without a colon is a name with an empty value, which no rule of names accepts. */
function parseLine(line: string): readonly [string, string] {
  const at = line.indexOf(':');
  return at < 0 ? [`${line} `, ''] : [line.slice(0, at), line.slice(at + 1).replace(/^[ \t]|[ \t]$/g, '')];
}
