import { createHook } from 'node:async_hooks';
import { Socket } from 'node:net';

/** What the host's process can be asked for. Promises are counted from `countPromises` on, until `collectGarbage`. */
export type Question = 'totals' | 'countPromises' | 'collectGarbage';

/** Private, but the one place that each write to the system comes from: Node's own for `write` and for `cork`. */
type Written = { _writeGeneric(isVector: boolean, content: unknown, ...rest: unknown[]): unknown };

const EXECUTE = 'E'.charCodeAt(0);
const QUERY = 'Q'.charCodeAt(0);

const postgresPort = Number(process.env.SVC_POSTGRES_PORT);
const ownPort = Number(process.env.SVC_PORT);

const toPostgres = new Set<Socket>();
const toClients = new Set<Socket>();
let [statements, writesToPostgres, writesToClient, promises] = [0, 0, 0, 0];

const hook = createHook({
  init(_id, type) {
    if (type === 'PROMISE') promises += 1;
  },
});

const written = Socket.prototype as unknown as Written;
const write = written._writeGeneric;
written._writeGeneric = function (this: Socket, isVector, content, ...rest) {
  count(this, isVector ? (content as { chunk: unknown }[]).map(({ chunk }) => chunk) : [content]);
  return write.call(this, isVector, content, ...rest);
};

function count(socket: Socket, chunks: readonly unknown[]): void {
  if (socket.localPort === ownPort) {
    toClients.add(socket);
    writesToClient += 1;
  } else if (socket.remotePort === postgresPort) {
    // The first that is sent is no message: it has no type.
    const isFirst = !toPostgres.has(socket);
    toPostgres.add(socket);
    writesToPostgres += 1;
    if (!isFirst) for (const chunk of chunks) if (Buffer.isBuffer(chunk)) countStatements(chunk);
  }
}

/** Messages are written whole. */
function countStatements(messages: Buffer): void {
  for (let at = 0; at < messages.length; at += 1 + messages.readInt32BE(at + 1)) {
    if (messages[at] === EXECUTE || messages[at] === QUERY) statements += 1;
  }
}

const bytesOf = (sockets: ReadonlySet<Socket>) =>
  [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);

/**
 * What the process has done so far, for callers and PostgreSQL: loaded into the host's process before anything else
 * (`--import`), and sent to its parent process on request.
 */
const totals = () => ({
  statements,
  writesToPostgres,
  bytesToPostgres: bytesOf(toPostgres),
  writesToClient,
  bytesToClient: bytesOf(toClients),
  promises,
  /** Bytes of V8's heap in use: they only grow while nothing collects garbage. */
  heap: process.memoryUsage().heapUsed,
});

export type Totals = ReturnType<typeof totals>;

// It must not outlive its parent process, however that ends.
process.on('disconnect', () => process.exit());

process.on('message', (question: Question) => {
  if (question === 'countPromises') hook.enable();
  if (question === 'collectGarbage') {
    hook.disable();
    globalThis.gc?.();
  }
  process.send?.(totals());
});
