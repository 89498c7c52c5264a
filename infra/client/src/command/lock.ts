import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, lstatSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure, reasonOf } from './failure.ts';
import { findPlace } from './place.ts';

/** In milliseconds: how long a process waits for others that found the same abandoned lock at the same time. */
const SETTLE_MS = 300;

/**
 * Takes a lock that ends with its process, however that ends: a socket of the file system, on which the process listens. A
 * process id in a file would not do: in a container, the next one is the same. The socket gets a short name of its own, because
 * such a name has at most 107 bytes, and is renamed to its place: of two processes that remove an abandoned lock and make
 * their own, both could succeed. The last one has the lock, and the others notice it.
 *
 * @returns a function that throws if another process has taken the lock
 * @throws {Failure} if another process holds it
 */
export async function takeLock(path: string): Promise<() => void> {
  const here = process.cwd();
  try {
    const { place, stats } = findPlace(path);
    if (stats && !stats.isSocket())
      throw new Failure(`${path} is not a lock, and is not replaced`, EXIT.wrongUse);
    // The names of the sockets are relative to their folder.
    process.chdir(dirname(place));
    const own = temporaryName();
    const server = createServer((socket) => socket.destroy());
    // Processes of other users may ask, too.
    server.listen({ path: own, writableAll: true });
    await once(server, 'listening');
    const inodeOf = (file: string) => lstatSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
    const inode = inodeOf(own);
    const verify = () => {
      if (inodeOf(place) !== inode) throw new Failure(`Another relay has taken ${path}.`);
    };
    process.on('exit', () => {
      for (const file of [join(dirname(place), own), place]) if (inodeOf(file) === inode) rmSync(file);
    });
    if (await isHeld(basename(place))) throw new Failure(`Another relay uses this cursor: it holds ${path}.`);
    renameSync(own, place);
    await sleep(SETTLE_MS);
    verify();
    return verify;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? reasonOf(error);
    throw new Failure(
      `${path}: no lock (a socket) can be made here (${reason}); --lock <path> puts it elsewhere`,
    );
  } finally {
    // Without access to the first folder, no path was relative to it.
    if (existsSync(`${here}/.`)) process.chdir(here);
  }
}

function temporaryName(): string {
  return `.${randomBytes(6).toString('hex')}.lock`;
}

/** Whether a process listens on a socket of this folder. A process that is stopped does. */
async function isHeld(name: string): Promise<boolean> {
  const link = temporaryName();
  symlinkSync(name, link);
  const socket = connect(link);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    return !['ECONNREFUSED', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '');
  } finally {
    socket.destroy();
    rmSync(link);
  }
}
