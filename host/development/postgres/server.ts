import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Account, canRun } from './place.ts';

/** The place of one server: its programs, its files, and the account that it runs under. */
export interface ServerPlace {
  readonly programs: string;
  readonly home: string;
  readonly cluster: string;
  readonly account: Account;
}

/** Settings of postgresql.conf. */
export type ServerSettings = Readonly<Record<string, string | number>>;

const LAUNCHER_FILE = 'launcher.pid';

/**
 * A shell between this process and the server, whose process id it prints. Its standard input is a pipe that closes
 * when this process ends, even by SIGKILL. The shell then stops the server: by SIGTERM before the server has set up its
 * handlers, and by SIGINT (fast shutdown) afterwards.
 */
const supervisor = `
  exec 3<&0 2>"$1"; shift
  LC_ALL=C "$@" 3<&- >&2 & server=$!
  { read -r _ <&3; kill -TERM $server; kill -INT $server; } 2>/dev/null & watcher=$!
  echo $server
  wait $server
  kill $watcher 2>/dev/null
`;

/**
 * Runs the server until `stop()`. Resolves when it accepts connections, with the id of its main process, and throws with
 * its log if it cannot.
 */
export async function runServer({ programs, home, cluster, account }: ServerPlace, settings: ServerSettings) {
  const log = join(home, 'server.log');
  // An earlier version wrote it under another account, which the server's one may not overwrite.
  await rm(log, { force: true });
  const options = Object.entries({ ...settings, unix_socket_directories: '' });
  const server = ['-D', cluster, ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  const child = spawn('/bin/sh', ['-c', supervisor, 'sh', log, join(programs, 'bin/postgres'), ...server], {
    ...account,
    cwd: '/',
    // In a process group of its own. Otherwise Ctrl-C would stop it before the service has drained.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  const processId = Number(await child.stdout.take(1).toArray());
  if (!(await isReady(cluster, processId, child))) {
    child.stdin.end();
    const lines = (await readFile(log, 'utf8').catch(() => '')).trim().split('\n');
    throw new Error(`PostgreSQL does not start. The end of ${log}:\n${lines.slice(-15).join('\n')}`);
  }
  return {
    processId,
    async stop(): Promise<void> {
      child.stdin.end();
      const lastResort = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), 30_000);
      await ended;
      clearTimeout(lastResort);
    },
  };
}

/** Waits until the server accepts connections: its lock file has its process id in line 1, and its state in line 8. */
async function isReady(cluster: string, processId: number, child: ChildProcess): Promise<boolean> {
  const limit = performance.now() + 60_000;
  for (; child.exitCode === null && performance.now() < limit; await pause(10)) {
    const lines = (await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
    if (Number(lines[0]) === processId && lines[7]?.trim() === 'ready') return true;
  }
  return false;
}

/**
 * Makes this process the only user of the cluster: ends a server that outlived its launcher, and removes a lock file
 * that would stop the next one. Throws if the launcher of a running server is still alive.
 */
export async function takeOver({ programs, home, cluster, account }: ServerPlace): Promise<void> {
  const lockFile = join(cluster, 'postmaster.pid');
  const server = await aliveProcessIn(lockFile);
  // After a crash the process id may belong to another program, and PostgreSQL would not start. macOS has no /proc.
  const unknown = process.platform === 'linux' ? '' : cluster;
  const commandLine = await readFile(`/proc/${server}/cmdline`, 'utf8').catch(() => unknown);
  const isRunning = server !== undefined && commandLine.split('\0').includes(cluster);
  const owner = isRunning ? await launcherOf(home) : undefined;
  if (owner !== undefined)
    throw new Error(`PostgreSQL runs on ${home} already, started by process ${owner}: stop that one first`);
  // It may end by itself in the meantime. If it does not end, the log of the next server says so.
  if (isRunning) await canRun(account, join(programs, 'bin', 'pg_ctl'), ['stop', '-D', cluster, '-t', '30']);
  else if (server !== undefined) await rm(lockFile, { force: true });
  await writeFile(join(home, LAUNCHER_FILE), `${process.pid}\n`);
}

/** Returns the id of the process that last started a server on `home`, if it is still alive. */
export const launcherOf = (home: string) => aliveProcessIn(join(home, LAUNCHER_FILE));

async function aliveProcessIn(file: string): Promise<number | undefined> {
  const processId = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10);
  try {
    return processId > 0 && process.kill(processId, 0) ? processId : undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? processId : undefined;
  }
}
