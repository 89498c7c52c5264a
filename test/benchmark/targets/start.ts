import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../host/development/free-port.ts';
import { residentMemory } from '../../lab/meters/memory.ts';
import type { Program } from './target.ts';

/** Seconds that a server may take to its first response, and to its end. */
const START_LIMIT_S = 20;
const STOP_LIMIT_S = 10;

/** Seconds that it is left alone before its memory at rest is read. */
const SETTLING_S = 1;

// None outlives the bench, however it ends.
const running = new Set<ChildProcess>();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
process.on('exit', () => running.forEach((child) => void child.kill('SIGKILL')));

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Starts a server, and waits for its first 200 on /health. */
export async function startServer(programAt: (port: number) => Program) {
  const port = await freePort();
  const { command, options, folder, variables } = programAt(port);
  const begun = performance.now();
  const child = spawn(command, options, {
    cwd: folder,
    env: { ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  running.add(child);
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors = (errors + chunk).slice(-2000);
  });
  const ended = once(child, 'exit').catch((error) => {
    errors += error;
  });
  const kill = () => child.kill('SIGKILL');
  while (!(await isHealthy(port))) {
    const isAlive = child.pid !== undefined && child.exitCode === null && child.signalCode === null;
    if (!isAlive || performance.now() - begun > START_LIMIT_S * 1000) {
      kill();
      throw new Error(`it does not start: ${errors}`);
    }
    await sleep(1);
  }
  const milliseconds = performance.now() - begun;

  return {
    port,
    processId: child.pid as number,
    /** From its start to its first 200 on /health. */
    milliseconds,
    errors: () => errors,
    async memoryAtRest(): Promise<number> {
      await sleep(SETTLING_S * 1000);
      return residentMemory(child.pid as number);
    },
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      const patience = setTimeout(kill, STOP_LIMIT_S * 1000);
      await ended;
      clearTimeout(patience);
      running.delete(child);
    },
  };
}

async function isHealthy(port: number): Promise<boolean> {
  const asked = fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(5000) });
  return asked.then(
    async (response) => (await response.text()) !== '' && response.ok,
    () => false,
  );
}
