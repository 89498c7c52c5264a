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
  exec 3<&0 2>>"$1"; shift
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
  await awaitEarlierServer(cluster, log);
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
  for (;;) {
    const { processId: owner, state } = await readLockFile(cluster);
    if (owner === processId && state === 'ready') break;
    if (performance.now() > limit || (child.exitCode ?? child.signalCode) !== null) {
      child.stdin.end();
      const lines = (await readFile(log, 'utf8').catch(() => '')).trim().split('\n');
      throw new Error(`PostgreSQL does not start. The end of ${log}:\n${lines.slice(-15).join('\n')}`);
    }
    await pause(10);
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
 * Waits for a server that is stopping, and removes the log of an earlier one, and its lock file if it has crashed: its
 * process id may now belong to another program, and PostgreSQL would not start. PostgreSQL refuses a second server.
 */
async function awaitEarlierServer(cluster: string, log: string): Promise<void> {
  for (const limit = performance.now() + 30_000; await isServed(cluster); await pause(50)) {
    const { state } = await readLockFile(cluster);
    if (state !== 'stopping' || performance.now() > limit) return;
  }
  for (const file of [lockFileOf(cluster), log]) await rm(file, { force: true });
}

/** Whether something listens on the port of the server that has run on this cluster last and has not removed its lock file. */
export async function isServed(cluster: string): Promise<boolean> {
  const { port } = await readLockFile(cluster);
  return port > 0 && (await isTaken(port));
}

/** The lock file has the process id in line 1, the port in line 4, and the state of the server in line 8. */
async function readLockFile(cluster: string) {
  const lines = (await readFile(lockFileOf(cluster), 'utf8').catch(() => '')).split('\n');
  return { processId: Number(lines[0]), port: Number(lines[3]), state: lines[7]?.trim() };
}

const lockFileOf = (cluster: string) => join(cluster, 'postmaster.pid');
