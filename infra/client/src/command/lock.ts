import { once } from 'node:events';
import { openSync, rmSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { basename, dirname } from 'node:path';
import { Failure, reasonOf } from './failure.ts';

const MAX_PATH_BYTES = 100;

/** A lock that this process holds. `verify` throws if another process has taken it, because its file was removed. */
export type Lock = { verify(): void; release(): void };

/**
 * Takes a lock that ends with its process, however that ends: a socket of the file system, on which the process listens. The
 * socket of a killed process is replaced. A process id in a file would not do: in a container, the next one is the same.
 *
 * @throws {Failure} if another process holds the lock
 */
export async function takeLock(path: string): Promise<Lock> {
  // The system cuts off a longer path of a socket. Other systems than Linux have no such file: the command reports that.
  const isShort = Buffer.byteLength(path) <= MAX_PATH_BYTES;
  const address = isShort ? path : `/proc/self/fd/${openSync(dirname(path), 'r')}/${basename(path)}`;
  const server = createServer((socket) => socket.destroy()).unref();
  for (let attempt = 1; ; attempt += 1) {
    try {
      await once(server.listen(address), 'listening');
      break;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EADDRINUSE' || attempt === 3) throw new Failure(`${path}: ${reasonOf(error)}`);
      if (await isHeld(address)) throw new Failure(`Another relay uses this cursor: it holds ${path}.`);
      rmSync(path, { force: true });
    }
  }
  const read = () => statSync(path, { throwIfNoEntry: false })?.ino;
  const own = read();
  return {
    // Two processes that find the same abandoned lock may both replace it. The last one has it.
    verify() {
      if (read() !== own) throw new Failure(`Another relay has taken ${path}.`);
    },
    release() {
      if (read() === own) rmSync(path, { force: true });
    },
  };
}

/** Whether a process listens. A process that is stopped does. */
function isHeld(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    connect(path, () => resolve(true)).on('error', ({ code = '' }: NodeJS.ErrnoException) =>
      resolve(!['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(code)),
    );
  });
}
