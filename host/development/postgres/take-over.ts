import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canRun } from './account.ts';
import type { ServerPlace } from './server.ts';

const launcherFile = 'launcher.pid';

/**
 * Makes this process the only user of the cluster: ends a server that outlived its launcher, and removes a lock file
 * that would stop the next one. Throws if the launcher of a running server is still alive.
 */
export async function takeOver({ programs, home, cluster, account }: ServerPlace): Promise<void> {
  const lockFile = join(cluster, 'postmaster.pid');
  const server = await aliveProcessIn(lockFile);
  if (server !== undefined) {
    const launcher = await launcherOf(home);
    // After a crash the process id may belong to another program, and PostgreSQL would not start.
    if (!(await isServerOf(cluster, server))) await rm(lockFile, { force: true });
    else if (launcher === undefined)
      // It may end by itself in the meantime. If it does not end, the log of the next server says so.
      await canRun(account, join(programs, 'bin', 'pg_ctl'), [
        'stop',
        '-D',
        cluster,
        '-m',
        'fast',
        '-t',
        '30',
      ]);
    else
      throw new Error(
        `PostgreSQL runs on ${home} already, started by process ${launcher}: stop that one first`,
      );
  }
  await writeFile(join(home, launcherFile), `${process.pid}\n`);
}

/** Returns the id of the process that last started a server on `home`, if it is still alive. */
export async function launcherOf(home: string): Promise<number | undefined> {
  return aliveProcessIn(join(home, launcherFile));
}

async function aliveProcessIn(file: string): Promise<number | undefined> {
  const processId = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10);
  try {
    return processId > 0 && process.kill(processId, 0) ? processId : undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? processId : undefined;
  }
}

async function isServerOf(cluster: string, processId: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const commandLine = await readFile(`/proc/${processId}/cmdline`, 'utf8').catch(() => '');
  return commandLine.split('\0').includes(cluster);
}
