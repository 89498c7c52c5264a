import type { Host } from './host.ts';

// The signals are heard before anything is loaded: one that comes early ends the process in order, too.
let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop());

const ADDRESS = 'SVC_HOST, which accepts an address of this machine';

/** Which setting to look at when the service cannot listen. */
const SETTING_AT_FAULT: Readonly<Record<string, string>> = {
  EADDRINUSE: 'SVC_PORT, which accepts another port, and SVC_HOST',
  EACCES: 'SVC_PORT, which accepts a port that this user may listen on',
  EADDRNOTAVAIL: ADDRESS,
  ENOTFOUND: ADDRESS,
  EAI_AGAIN: ADDRESS,
  EINVAL: ADDRESS,
};

const starting = start();
starting.catch((error) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
});

async function start(): Promise<Host> {
  const { readSettings } = await import('../lib/settings.ts');
  const settings = readSettings();
  const { startHost } = await import('./host.ts');
  return startHost(settings);
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  const host = await starting;
  await host.shutDown();
  process.exit(0);
}

function messageOf({ name, code, message, stack }: NodeJS.ErrnoException): string {
  if (name === 'SettingsError') return message;
  const setting = SETTING_AT_FAULT[code ?? ''];
  return setting ? `The service cannot listen: ${message}. See ${setting}.` : (stack ?? message);
}
