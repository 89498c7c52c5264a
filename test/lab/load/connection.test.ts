import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type Connection, openConnection } from './connection.ts';

const ANSWER = 'HTTP/1.1 201 Created\r\nX-Long: y\r\ncontent-length: 4\r\n\r\nbody';

const opened: { close(): void }[] = [];
afterEach(() => opened.splice(0).forEach((one) => void one.close()));

/** A connection to a server that answers every request in this way. */
async function connectTo(answer: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('data', () => answer(socket)).on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { promise: failure, resolve: fail } = Promise.withResolvers<string>();
  const connection = await openConnection((server.address() as AddressInfo).port, fail);
  opened.push(connection, server, { close: () => sockets.forEach((socket) => void socket.destroy()) });
  return { connection, failure };
}

const statusOf = (connection: Connection) =>
  new Promise<number>((resolve) => connection.send('GET / HTTP/1.1\r\n\r\n', resolve));

test('each response gives its status when it is complete', async () => {
  const { connection } = await connectTo((socket) => socket.write(ANSWER));
  expect([await statusOf(connection), await statusOf(connection)]).toEqual([201, 201]);
});

test('a response may come in pieces, cut anywhere', async () => {
  let cut = 1;
  const { connection } = await connectTo((socket) => {
    socket.write(ANSWER.slice(0, cut), () => setImmediate(() => socket.write(ANSWER.slice(cut))));
  });
  const statuses: number[] = [];
  for (; cut < ANSWER.length; cut += 1) statuses.push(await statusOf(connection));
  expect(statuses).toEqual(Array(ANSWER.length - 1).fill(201));
});

test('a response without a length is a fault', async () => {
  const { connection, failure } = await connectTo((socket) =>
    socket.write('HTTP/1.1 200 OK\r\n\r\ncontent-length: 1'),
  );
  connection.send('GET / HTTP/1.1\r\n\r\n', () => {});
  expect(await failure).toBe('an answer without Content-Length: HTTP/1.1 200 OK');
});

test('more bytes than the length are a fault', async () => {
  const { connection, failure } = await connectTo((socket) => socket.write(`${ANSWER}more`));
  connection.send('GET / HTTP/1.1\r\n\r\n', () => {});
  expect(await failure).toBe('more bytes than the answer has');
});

test('a connection that the server ends is a fault', async () => {
  const { connection, failure } = await connectTo((socket) => socket.destroy());
  connection.send('GET / HTTP/1.1\r\n\r\n', () => {});
  expect(await failure).toMatch(/closed|ECONNRESET/);
});
