import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isTaken } from '../free-port.ts';
import type { Account } from './place.ts';

/** The place of one server: its programs, its files, and the account that it runs under. */
export interface ServerPlace {
  readonly programs: string;
  readonly home: string;
  readonly cluster: string;
  readonly account: Account;
}

/** Settings of postgresql.conf. */
export type ServerSettings = Readonly<Record<string, string | number>>;

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
  await awaitEarlierServer(cluster);
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
  const limit = performance.now() + 60_000;
  // A standby is ready to accept read-only connections.
  for (let lines = ''; !lines.includes('ready to accept'); await pause(10)) {
    const hasFailed = (child.exitCode ?? child.signalCode) !== null || performance.now() > limit;
    lines = (await readFile(log, 'utf8').catch(() => '')).trim();
    if (!hasFailed) continue;
    child.stdin.end();
    throw new Error(
      `PostgreSQL does not start. The end of ${log}:\n${lines.split('\n').slice(-15).join('\n')}`,
    );
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

/**
 * Waits for a server that is stopping, and removes the lock file of a crashed one. Its process id may now belong to
 * another program, and PostgreSQL would not start. PostgreSQL itself refuses a second server.
 */
async function awaitEarlierServer(cluster: string): Promise<void> {
  const lockFile = join(cluster, 'postmaster.pid');
  const limit = performance.now() + 30_000;
  for (; performance.now() < limit; await pause(50)) {
    const [, , , port, , , , state] = (await readFile(lockFile, 'utf8').catch(() => '')).split('\n');
    if (!port || !(await isTaken(Number(port)))) return rm(lockFile, { force: true });
    if (state?.trim() !== 'stopping') return;
  }
}
