import { connect, type Socket } from 'node:net';

const LENGTH = /\r\ncontent-length: *(\d+)/i;

/** One connection, kept alive: a request at a time. */
export type Connection = {
  /** Calls back once, with the status, when the whole answer is there. */
  send(wire: string, done: (status: number) => void): void;
  close(): void;
};

/** Connects; `fail` hears of everything that should not happen, an answer without a length included. */
export function openConnection(port: number, fail: (reason: string) => void): Promise<Connection> {
  let done: ((status: number) => void) | undefined;
  let status = 0;
  /** Bytes of the body that are still to come; undefined while the head is. */
  let missing: number | undefined;
  let head = '';
  let isClosed = false;

  function receive(chunk: Buffer): void {
    const bytes = missing === undefined ? bytesAfterHead(chunk) : chunk.length;
    if (missing === undefined || bytes === undefined) return;
    missing -= bytes;
    if (missing < 0) fail('more bytes than the answer has');
    if (missing > 0) return;
    missing = undefined;
    const tell = done;
    done = undefined;
    tell?.(status);
  }

  /** How many bytes of the body are here already; undefined while the head is not whole. */
  function bytesAfterHead(chunk: Buffer): number | undefined {
    head += chunk.toString('latin1');
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const length = LENGTH.exec(head);
    if (!length || length.index > end) {
      fail(`an answer without Content-Length: ${head.slice(0, end)}`);
      return undefined;
    }
    status = Number(head.slice(9, 12));
    missing = Number(length[1]);
    const bytes = head.length - end - 4;
    head = '';
    return bytes;
  }

  return new Promise((resolve) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.on('data', receive);
    socket.on('error', (error) => fail(error.message));
    socket.on('close', () => isClosed || fail('the connection was closed'));
    socket.on('connect', () =>
      resolve({
        send(wire, then) {
          done = then;
          socket.write(wire, 'latin1');
        },
        close() {
          isClosed = true;
          socket.destroy();
        },
      }),
    );
  });
}
