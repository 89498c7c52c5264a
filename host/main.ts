import { readSettings, SettingsError } from '../lib/settings.ts';
import type { Host } from './host.ts';

// The signals are heard before anything slow is loaded: one that comes early ends the process in order, too.
let stopping = false;
let starting: Promise<Host> | undefined;
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop());

try {
  const settings = readSettings();
  starting = import('./host.ts').then(({ startHost }) => startHost(settings));
  await starting;
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  const host = await starting;
  await host?.shutDown();
  process.exit(0);
}

function messageOf(error: unknown): string {
  if (error instanceof SettingsError) return error.message;
  const { code, message, stack } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `The port is taken: ${message}. SVC_PORT names another.`;
  return stack ?? message;
}
