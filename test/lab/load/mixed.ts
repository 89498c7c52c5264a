import { setTimeout as sleep } from 'node:timers/promises';
import { startReader } from '../ledger/feed.ts';
import { userIn } from '../ledger/ledger.ts';
import type { ServiceUnderFault } from '../stage/stage.ts';
import { startCallers } from './callers.ts';
import type { Random } from './random.ts';

/** 100 requests a second in all. */
const WRITERS = 8;
const LISTERS = 2;
const PAUSE_MS = 100;

const ADDRESSES = 10_000;

/**
 * Starts what is asked of a service all day: callers that create, read, update and delete the same users, with and without
 * conditions and keys (the model), lists by all filters, and a reader that waits for changes, and is restarted now and
 * then. Without rests it is as much as they can ask.
 */
export function startMixedLoad(service: ServiceUnderFault, random: Random, { isResting = true } = {}) {
  let isStopped = false;
  const pauseMs = isResting ? PAUSE_MS : 0;
  const model = startCallers(service, WRITERS, random.branch(), { pauseMs, addresses: ADDRESSES });
  const reader = startReader(service, random.branch(), 0.02);
  const listing = Array.from({ length: LISTERS }, () => list(random.branch()));

  async function list(chance: Random): Promise<void> {
    const caller = service.caller();
    while (!isStopped) {
      await caller.read(chance.pick(QUERIES)(chance, service));
      await sleep(chance.below(2 * pauseMs));
    }
    caller.close();
  }

  return {
    /** Ends it in order; resolves with what the reader found wrong, and how many changes it has read. */
    async stop() {
      isStopped = true;
      await Promise.all([model.stop(), ...listing]);
      return reader.finish();
    },
  };
}

type Query = (chance: Random, service: ServiceUnderFault) => string;

const QUERIES: readonly Query[] = [
  () => '?limit=10',
  (chance) => `?limit=10&skip=${chance.below(50)}`,
  () => '?limit=10&sort=-created_at',
  (chance) => `?email=model-${chance.below(ADDRESSES)}@example.com`,
  (chance) => `?is_active=${chance.chance(0.5)}&limit=10`,
  (_, { ledger }) => {
    const last = ledger.entries.findLast(({ operation, status }) => operation === 'create' && status === 201);
    return last ? `?ids=${userIn(last).id}` : '?limit=10';
  },
];
