import type { PassingFault, Surroundings } from '../faults/passing-faults.ts';
import type { Entry, Ledger } from '../lab/ledger/ledger.ts';
import type { ServiceUnderFault } from '../lab/stage/stage.ts';
import { until } from '../stage/until.ts';

/** In seconds: until when everything is well after a fault. */
const RECOVERY_LIMIT_S = 15;

/** Brings a fault about, and waits until a read, a create and /ready succeed. What came of it is asked for later. */
export async function bringAbout(fault: PassingFault, surroundings: Surroundings, hours: number) {
  const { service, claim } = surroundings;
  const begun = performance.now();
  await fault
    .bringAbout(surroundings)
    .catch((error) => claim(`${fault.name} came about`, false, String(error)));
  const ended = performance.now();
  await until('all is well', () => isWell(service), { seconds: RECOVERY_LIMIT_S }).catch(() =>
    claim(`all is well ${RECOVERY_LIMIT_S} seconds after ${fault.name}`, false),
  );
  const outcome = {
    fault: fault.name,
    at_minute: Number((hours * 60).toFixed(1)),
    lasted_seconds: seconds(ended - begun),
    recovered_seconds: seconds(performance.now() - ended),
  };
  return () => ({
    ...outcome,
    longest_response: longestResponse(service.ledger, begun),
    refused_by_status: service.ledger.refusedByStatus(begun),
  });
}

/** The request after a moment whose answer took longest: how long, and what it was. */
export function longestResponse({ entries }: Ledger, moment: number): string {
  const taken = ({ answered, sent }: Entry) => answered - sent;
  const [longest] = entries
    .filter(({ sent, status }) => sent > moment && status !== 0)
    .toSorted((one, other) => taken(other) - taken(one));
  return longest ? `${seconds(taken(longest))} s, ${longest.operation} ${longest.status}` : '';
}

async function isWell(service: ServiceUnderFault): Promise<boolean> {
  const caller = service.caller();
  const [read, created, ready] = await Promise.all([
    caller.read('?limit=1'),
    caller.create(
      { email: `${crypto.randomUUID()}@example.com` },
      { 'idempotency-key': crypto.randomUUID() },
    ),
    fetch(`${service.url}/ready`).catch(() => undefined),
  ]);
  caller.close();
  await ready?.body?.cancel();
  return read.status === 200 && created.status === 201 && ready?.status === 200;
}

const seconds = (milliseconds: number) => Number((milliseconds / 1000).toFixed(2));
