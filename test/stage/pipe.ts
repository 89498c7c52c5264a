import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A named pipe, whose reader a test plays: it takes what has come when it is asked to, and so stalls in between;
 * it can die, and another can take its place. `writeEnd` is for the process that writes, and closed here once that has it.
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
    /** Reads all that has come, and gives all that has ever been read. */
    read(): string {
      if (reader === undefined) return taken;
      const chunk = Buffer.alloc(65_536);
      try {
        for (let size = readSync(reader, chunk); size > 0; size = readSync(reader, chunk)) {
          taken += chunk.toString('latin1', 0, size);
        }
      } catch (error) {
        // There is no more at the moment.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      return taken;
    },
    /** Closes the reading end: who writes now gets EPIPE. */
    die() {
      if (reader !== undefined) closeSync(reader);
      reader = undefined;
    },
    /** Another reader, to whom what the first one has not read is lost. */
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
