import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceUnderFault } from '../lab/stage/stage.ts';
import type { Settled, watch } from './watched-host.ts';

/** What a service held at a moment. Hours since the record began. */
export type Reading = Settled & { readonly hours: number; readonly sessions: number };

const HOUR_MS = 3_600_000;

/** Records on request what a service holds, with and without garbage. */
export function startRecorder({ postgres }: ServiceUnderFault, settled: ReturnType<typeof watch>) {
  const begun = performance.now();
  const readings: Reading[] = [];
  const hours = () => (performance.now() - begun) / HOUR_MS;

  /** Sessions that were given up end a moment later. */
  async function fewestSessions(): Promise<number> {
    const first = await postgres.countSessions();
    await sleep(500);
    return Math.min(first, await postgres.countSessions());
  }

  return {
    readings,
    hours,
    async read(): Promise<Reading> {
      const held = await settled();
      const reading = { hours: hours(), ...held, sessions: await fewestSessions() };
      readings.push(reading);
      return reading;
    },
  };
}
