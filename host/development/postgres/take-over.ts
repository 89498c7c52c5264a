import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, runAs } from './account.ts';

const launcherFile = 'launcher.pid';

/** The place of one server: its programs, its files, and the account that it runs under. */
export interface ServerPlace {
  readonly programs: string;
  readonly home: string;
  readonly cluster: string;
  readonly account: Account;
}

/**
 * Makes this process the only user of the cluster: ends a server that outlived its launcher, and removes a lock file
 * that would stop the next one. Throws if the launcher of a running server is still alive.
 */
export async function takeOver({ programs, home, cluster, account }: ServerPlace): Promise<void> {
  const lockFile = join(cluster, 'postmaster.pid');
  const server = await readProcessId(lockFile);
  if (server !== undefined && isAlive(server)) {
    const launcher = await launcherOf(home);
    if (!(await isServerOf(cluster, server))) {
      // After a crash the process id may belong to another program, and PostgreSQL would not start.
      await rm(lockFile, { force: true });
    } else if (launcher !== undefined) {
      throw new Error(
        `PostgreSQL runs on ${home} already, started by process ${launcher}: stop that one first`,
      );
    } else {
      const control = join(programs, 'bin', 'pg_ctl');
      await runAs(account, control, ['stop', '-D', cluster, '-m', 'fast', '-t', '30']).catch(
        async (error) => {
          // It may have ended by itself in the meantime.
          if (await isServerOf(cluster, server)) throw error;
        },
      );
    }
  }
  await writeFile(join(home, launcherFile), `${process.pid}\n`);
}

/** Returns the id of the process that last started a server on `home`, if it is still alive. */
export async function launcherOf(home: string): Promise<number | undefined> {
  const launcher = await readProcessId(join(home, launcherFile));
  return launcher !== undefined && isAlive(launcher) ? launcher : undefined;
}

async function readProcessId(file: string): Promise<number | undefined> {
  const number = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10);
  return number > 0 ? number : undefined;
}

function isAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function isServerOf(cluster: string, processId: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const commandLine = await readFile(`/proc/${processId}/cmdline`, 'utf8').catch(() => '');
  return commandLine.split('\0').includes(cluster);
}
