import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServerPlace } from './take-over.ts';

const startLimit = 60_000;
const stopLimit = 30_000;

type ServerSettings = Readonly<Record<string, string | number>>;

/** The server's main process, and how to end it. */
export interface RunningServer {
  readonly processId: number;
  stop(): Promise<void>;
}

/**
 * A shell between this process and the server. Its standard input is a pipe that closes when this process ends, even by
 * SIGKILL. The shell then stops the server: by SIGTERM before the server has set up its handlers, and by SIGINT (fast
 * shutdown) afterwards.
 */
const supervisor = `
  export LC_ALL=C
  exec 3<&0 </dev/null
  "$@" 3<&- & server=$!
  { read -r _ <&3; kill -TERM $server; kill -INT $server; } 2>/dev/null & watcher=$!
  exec 3<&-
  wait $server; status=$?
  kill $watcher 2>/dev/null; wait
  exit $status
`;

/** Runs the server until `stop()`. Resolves when it accepts connections, and throws with its log if it cannot. */
export async function runServer(place: ServerPlace, settings: ServerSettings): Promise<RunningServer> {
  const logFile = join(place.home, 'server.log');
  const lockBefore = await readLock(place);
  const child = spawnServer(place, settings, logFile);
  const ended = once(child, 'exit');
  try {
    const processId = await Promise.race([whenReady(place, lockBefore, ended), failWhenEnded(ended)]);
    let stopped: Promise<void> | undefined;
    return { processId, stop: () => (stopped ??= stopServer(child, ended)) };
  } catch (error) {
    child.stdin?.end();
    const log = await readFile(logFile, 'utf8').catch(() => '');
    const tail = log.trim().split('\n').slice(-15).join('\n');
    throw new Error(`${(error as Error).message}. The end of ${logFile}:\n${tail}`);
  }
}

function spawnServer({ programs, cluster, account }: ServerPlace, settings: ServerSettings, logFile: string) {
  const options = Object.entries({ ...settings, unix_socket_directories: '' });
  const program = join(programs, 'bin', 'postgres');
  const server = ['-D', cluster, ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  const log = openSync(logFile, 'w');
  try {
    return spawn('/bin/sh', ['-c', supervisor, 'postgres', program, ...server], {
      ...account,
      cwd: '/',
      // In a process group of its own. Otherwise Ctrl-C would stop it before the service has drained.
      detached: true,
      stdio: ['pipe', log, log],
    });
  } finally {
    closeSync(log);
  }
}

// The server's process id is in the first line of its lock file, and its state in the eighth.
async function readLock({ cluster }: ServerPlace): Promise<string> {
  return readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
}

async function whenReady(place: ServerPlace, lockBefore: string, ended: Promise<unknown>): Promise<number> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  ended.then(over, over);
  for (let waited = 0; waited < startLimit && !isOver; waited += 10) {
    const lock = await readLock(place);
    if (lock !== lockBefore && lock.split('\n')[7]?.trim() === 'ready') return Number.parseInt(lock, 10);
    await pause(10);
  }
  throw new Error(`PostgreSQL was not ready within ${startLimit / 1000} seconds`);
}

async function failWhenEnded(ended: Promise<unknown[]>): Promise<never> {
  const [code] = await ended;
  throw new Error(`PostgreSQL ended with exit code ${code} while starting`);
}

async function stopServer(child: ChildProcess, ended: Promise<unknown>) {
  child.stdin?.end();
  const lastResort = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, stopLimit);
  await ended;
  clearTimeout(lastResort);
}
