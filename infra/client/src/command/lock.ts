import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { lstatSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure, reasonOf } from './failure.ts';
import { findPlace } from './place.ts';

/** In milliseconds: how long a process waits for others that found the same abandoned lock at the same time. */
const SETTLE_MS = 300;

/** A lock that this process holds. `verify` throws if another process has taken it. */
export type Lock = { verify(): void };

/**
 * Takes a lock that ends with its process, however that ends: a socket of the file system, on which the process listens. A
 * process id in a file would not do: in a container, the next one is the same. The socket gets a short name of its own, because
 * such a name has at most 107 bytes, and is renamed to its place: of two processes that remove an abandoned lock and make
 * their own, both could succeed. The last one has the lock, and the others notice it.
 *
 * @throws {Failure} if another process holds the lock
 */
export async function takeLock(path: string): Promise<Lock> {
  try {
    const { place, stats } = findPlace(path);
    if (stats && !stats.isSocket())
      throw new Failure(`${path} is not a lock, and is not replaced`, EXIT.wrongUse);
    const own = join(dirname(place), temporaryName());
    const server = createServer((socket) => socket.destroy());
    const listening = once(server, 'listening');
    // Processes of other users may ask, too.
    inFolder(own, (name) => server.listen({ path: name, writableAll: true }));
    await listening;
    const read = (file: string) => lstatSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
    const inode = read(own);
    process.on('exit', () => {
      for (const file of [own, place]) if (read(file) === inode) rmSync(file, { force: true });
    });
    if (await isHeld(place)) throw new Failure(`Another relay uses this cursor: it holds ${path}.`);
    renameSync(own, place);
    const verify = () => {
      if (read(place) !== inode) throw new Failure(`Another relay has taken ${path}.`);
    };
    await sleep(SETTLE_MS);
    verify();
    return { verify };
  } catch (error) {
    if (error instanceof Failure) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? reasonOf(error);
    throw new Failure(
      `${path}: no lock (a socket) can be made here (${reason}); --lock <path> puts it elsewhere`,
    );
  }
}

function temporaryName(): string {
  return `.${randomBytes(6).toString('hex')}.lock`;
}

/** Whether a process listens. A process that is stopped does. */
function isHeld(place: string): Promise<boolean> {
  const link = join(dirname(place), temporaryName());
  symlinkSync(basename(place), link);
  const socket = inFolder(link, (name) => connect(name));
  rmSync(link);
  return new Promise((resolve) => {
    socket.on('connect', () => resolve(true));
    socket.on('error', ({ code = '' }: NodeJS.ErrnoException) =>
      resolve(!['ECONNREFUSED', 'ENOENT'].includes(code)),
    );
  });
}

/** In bytes, on macOS. */
const MAX_SOCKET_NAME_BYTES = 103;

/** Uses a socket by its name alone if its path is too long. */
function inFolder<Value>(path: string, use: (name: string) => Value): Value {
  if (Buffer.byteLength(path) <= MAX_SOCKET_NAME_BYTES) return use(path);
  const here = process.cwd();
  process.chdir(dirname(path));
  try {
    return use(basename(path));
  } finally {
    process.chdir(here);
  }
}
