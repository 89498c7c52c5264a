import type { BuiltHost, Exit, Line } from './built-host.ts';

/** How a process ended after a signal, and how many seconds that took. */
export async function endedBy(
  signal: NodeJS.Signals,
  host: Pick<BuiltHost, 'signal' | 'exited'>,
): Promise<Exit & { seconds: number }> {
  const begun = performance.now();
  host.signal(signal);
  return { ...(await host.exited), seconds: (performance.now() - begun) / 1000 };
}

/** The events that tell how the drain went: one of them, once per process. */
export function drainEvents({ events }: Pick<BuiltHost, 'events'>): readonly Line[] {
  return events().filter(({ event }) => String(event).startsWith('shutdown_'));
}
