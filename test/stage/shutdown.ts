import type { BuiltHost } from './built-service.ts';
import type { Exit, Line } from './process.ts';

/** The end of a process after a signal, and the seconds until then. */
export async function endedBy(
  signal: NodeJS.Signals,
  host: Pick<BuiltHost, 'signal' | 'exited'>,
): Promise<Exit & { seconds: number }> {
  const begun = performance.now();
  host.signal(signal);
  return { ...(await host.exited), seconds: (performance.now() - begun) / 1000 };
}

/** The events that report the drain: one per process. */
export function drainEvents({ events }: Pick<BuiltHost, 'events'>): readonly Line[] {
  return events().filter(({ event }) => String(event).startsWith('shutdown_'));
}
