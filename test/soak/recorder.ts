import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceUnderFault } from '../lab/stage/stage.ts';
import type { Held, Settled, watch } from './watched-host.ts';

/** What was held at a moment; sessions are unknown while PostgreSQL does not answer. Hours since the load began. */
export type Sample = Held & { readonly hours: number; readonly sessions: number | undefined };

/** The same after the garbage has been collected. */
export type Reading = Settled & { readonly hours: number; readonly sessions: number };

const HOUR_MS = 3_600_000;

/** Records every second what a service holds, and on request what is left without garbage. */
export function startRecorder(
  service: ServiceUnderFault,
  watched: ReturnType<typeof watch>,
  each: () => void,
) {
  const begun = performance.now();
  const samples: Sample[] = [];
  const readings: Reading[] = [];
  const hours = () => (performance.now() - begun) / HOUR_MS;
  let sessions: number | undefined;
  let isAsked = false;

  const timer = setInterval(() => {
    if (!service.isAlive()) return;
    samples.push({ hours: hours(), ...watched.held(), sessions });
    sessions = undefined;
    each();
    if (isAsked) return;
    isAsked = true;
    // A PostgreSQL that is frozen answers when it is no longer.
    void service.postgres
      .countSessions()
      .then((count) => {
        sessions = count;
      })
      .catch(() => {})
      .finally(() => {
        isAsked = false;
      });
  }, 1000);

  /** Sessions that were given up end a moment later. */
  async function fewestSessions(): Promise<number> {
    const first = await service.postgres.countSessions();
    await sleep(500);
    return Math.min(first, await service.postgres.countSessions());
  }

  return {
    samples,
    readings,
    hours,
    async read(): Promise<Reading> {
      const settled = await watched.settled();
      const reading = { hours: hours(), ...settled, sessions: await fewestSessions() };
      readings.push(reading);
      return reading;
    },
    stop: () => clearInterval(timer),
  };
}
