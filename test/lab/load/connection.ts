import { connect } from 'node:net';

const LENGTH = /\r\ncontent-length: *(\d+)/i;

/** A connection that is kept alive, for one request at a time. */
export type Connection = {
  send(wire: string): void;
  close(): void;
};

type Events = {
  open(): void;
  /** A response is complete. */
  response(status: number): void;
  /** It has ended, or the server has sent something wrong, such as a response without a length. Called once, and not after `close()`. */
  end(reason: string): void;
};

/** Connects to a port of 127.0.0.1. */
export function openConnection(port: number, on: Events): Connection {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let isOver = false;
  let status = 0;
  /** Bytes of the body that are still to come; undefined before the end of the head. */
  let missing: number | undefined;
  let head = '';

  function end(reason: string): void {
    if (isOver) return;
    close();
    on.end(reason);
  }

  function close(): void {
    isOver = true;
    socket.destroy();
  }

  function receive(chunk: Buffer): void {
    const bytes = missing === undefined ? bytesAfterHead(chunk) : chunk.length;
    if (missing === undefined || bytes === undefined) return;
    missing -= bytes;
    if (missing < 0) end('more bytes than the response has');
    if (missing !== 0) return;
    missing = undefined;
    on.response(status);
  }

  /** The bytes of the body that are here; undefined before the end of the head. */
  function bytesAfterHead(chunk: Buffer): number | undefined {
    head += chunk.toString('latin1');
    const endOfHead = head.indexOf('\r\n\r\n');
    if (endOfHead < 0) return undefined;
    const length = LENGTH.exec(head);
    if (!length || length.index > endOfHead) {
      end(`a response without Content-Length: ${head.slice(0, endOfHead)}`);
      return undefined;
    }
    status = Number(head.slice(9, 12));
    missing = Number(length[1]);
    const bytes = head.length - endOfHead - 4;
    head = '';
    return bytes;
  }

  socket.on('connect', on.open).on('data', receive);
  socket.on('error', (error) => end(error.message)).on('close', () => end('the connection was closed'));
  return { send: (wire) => void socket.write(wire, 'latin1'), close };
}
