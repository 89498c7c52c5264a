import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { lstatSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure, reasonOf } from './failure.ts';
import { findPlace, inFolder } from './place.ts';

/** In milliseconds: how long a process waits for others that found the same abandoned lock at the same time. */
const SETTLE_MS = 300;

/** In bytes, so that the name of a socket in the folder does not exceed the limit of macOS, 103. */
const MAX_SOCKET_FOLDER_BYTES = 80;

/** A lock that this process holds. */
export type Lock = {
  /** @throws {Failure} if another process has taken it */
  verify(): void;
};

/**
 * Takes a lock that ends with its process, however that ends: a socket of the file system, on which the process listens. It is
 * made under a short name of its own, because the name of a socket has at most 107 bytes, and renamed to its place, because two
 * processes that remove an abandoned socket there could both succeed. The last one has the lock, and the others notice it. A
 * process id in a file would not do: in a container, the next one is the same.
 *
 * @throws {Failure} if another process holds the lock
 */
export async function takeLock(path: string): Promise<Lock> {
  const own = temporaryName();
  const server = createServer((socket) => socket.destroy());
  try {
    const { folder, name, stats } = findPlace(path);
    if (stats && !stats.isSocket())
      throw new Failure(`${path} is not a lock, and is left as it is`, EXIT.wrongUse);
    const listening = once(server, 'listening');
    // Processes of other users may ask, too.
    inFolder(folder, (at) => server.listen({ path: at + own, writableAll: true }), MAX_SOCKET_FOLDER_BYTES);
    await listening;
    const read = (file: string) =>
      inFolder(folder, (at) => lstatSync(at + file, { bigint: true, throwIfNoEntry: false })?.ino);
    const inode = read(own);
    process.on('exit', () => {
      for (const file of [own, name])
        if (read(file) === inode) inFolder(folder, (at) => rmSync(at + file, { force: true }));
    });
    if (await isHeld(folder, name)) throw new Failure(`Another relay uses this cursor: it holds ${path}.`);
    inFolder(folder, (at) => renameSync(at + own, at + name));
    const verify = () => {
      if (read(name) !== inode) throw new Failure(`Another relay has taken ${path}.`);
    };
    await sleep(SETTLE_MS);
    verify();
    return { verify };
  } catch (error) {
    if (error instanceof Failure) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? reasonOf(error);
    throw new Failure(
      `${path}: the lock, a socket, cannot be made here (${reason}); --lock <path> puts it elsewhere`,
    );
  }
}

function temporaryName(): string {
  return `.${randomBytes(6).toString('hex')}.lock`;
}

/** Whether a process listens. A process that is stopped does. */
function isHeld(folder: string, name: string): Promise<boolean> {
  const link = temporaryName();
  const connectIn = (at: string) => {
    symlinkSync(name, at + link);
    try {
      return connect(at + link);
    } finally {
      rmSync(at + link);
    }
  };
  const socket = inFolder(folder, connectIn, MAX_SOCKET_FOLDER_BYTES);
  return new Promise((resolve) => {
    socket.on('connect', () => resolve(true));
    socket.on('error', ({ code = '' }: NodeJS.ErrnoException) =>
      resolve(!['ECONNREFUSED', 'ENOENT'].includes(code)),
    );
  });
}
