import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A named pipe with the test as its reader: it reads only on request, and so stalls in between. It can die, and another
 * reader can replace it. `writeEnd` is for the writing process, and is closed here as soon as that process has it.
 */
export function createPipe() {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-pipe-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const openReader = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  let reader: number | undefined = openReader();
  const writeEnd = openSync(path, constants.O_WRONLY);
  let taken = '';

  return {
    writeEnd,
    /** Reads all available bytes, and returns everything that was ever read. */
    read(): string {
      if (reader === undefined) return taken;
      const chunk = Buffer.alloc(65_536);
      try {
        for (let size = readSync(reader, chunk); size > 0; size = readSync(reader, chunk)) {
          taken += chunk.toString('latin1', 0, size);
        }
      } catch (error) {
        // The pipe is empty.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      return taken;
    },
    /** Closes the reading end. A write then fails with EPIPE. */
    die() {
      if (reader !== undefined) closeSync(reader);
      reader = undefined;
    },
    /** Starts another reader. Bytes that the first one has not read are lost. */
    revive() {
      reader = openReader();
      taken = '';
    },
    remove() {
      this.die();
      rmSync(folder, { recursive: true });
    },
  };
}
