import type { Host } from './host.ts';
import { listenFault } from './listen.ts';
import { setHeapFlags } from './v8-flags.ts';

// The signal handlers are set before the service is loaded, so that an early signal also ends the process in order.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop());

const starting = start();
starting.catch((error) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
});

// A defect of this service or of a library. The memory may be in any state, so ending the process is the only safe way.
process.once('uncaughtException', (error) => void crash(error));

async function start(): Promise<Host> {
  const { readSettings } = await import('../lib/settings/settings.ts');
  const settings = readSettings();
  const { startHost } = await import('./host.ts');
  const host = await startHost(settings);
  setHeapFlags();
  return host;
}

async function stop(): Promise<void> {
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
