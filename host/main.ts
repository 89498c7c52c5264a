import { fitHeap } from './heap.ts';
import type { Host } from './host.ts';
import { listenFault } from './listen-fault.ts';

// The signals are heard before anything is loaded: one that comes early ends the process in order, too.
let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop());

const starting = start();
starting.catch((error) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
});

// A defect of ours or of a library's: what is in memory may be half done, so that nothing but an end is safe.
process.once('uncaughtException', (error) => void crash(error));

async function start(): Promise<Host> {
  const { readSettings } = await import('../lib/settings.ts');
  const settings = readSettings();
  const { startHost } = await import('./host.ts');
  const host = await startHost(settings);
  fitHeap();
  return host;
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  const host = await starting;
  await host.shutDown();
  process.exit(0);
}

async function crash(thrown: unknown): Promise<void> {
  const host = await starting;
  await host.logCrash(thrown instanceof Error ? thrown : new Error(`thrown: ${String(thrown)}`));
  process.exit(1);
}

function messageOf(error: NodeJS.ErrnoException): string {
  if (error.name === 'SettingsError') return error.message;
  return listenFault(error) ?? error.stack ?? error.message;
}
