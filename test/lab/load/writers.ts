import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Entry, isInDoubt, isKeyInUse, keyOf, type Ledger, userIn } from '../ledger/ledger.ts';
import { type CallerOptions, createCaller } from './caller.ts';
import type { Random } from './random.ts';
import { sideBySide } from './side-by-side.ts';

/** How long a writer rests after a refusal, in milliseconds: it is to see the first success early, and to be no storm. */
const REST = 20;

/** How many creates in doubt are settled at once. */
const SETTLERS = 16;

type Options = CallerOptions & {
  readonly writers: number;
  readonly random: Random;
  /** The mean time from one user of a writer to its next, in milliseconds. */
  readonly pause?: number;
};

let loads = 0;

/**
 * Starts writers that create users, update, read and delete them, each on a connection of its own. Every create has an
 * Idempotency-Key. `stop()` lets each finish what it has begun.
 */
export function startLoad({ writers, random, pause: between = 0, ...options }: Options) {
  loads += 1;
  const load = loads;
  let isStopped = false;
  let rest = REST;
  const working = Array.from({ length: writers }, (_, writer) => write(writer, random.branch()));

  async function write(writer: number, chance: Random): Promise<void> {
    const caller = createCaller(options);
    for (let round = 0; !isStopped; round += 1) {
      if (between > 0) await sleep(chance.below(2 * between));
      const created = await caller.create(
        { email: `load-${load}-${writer}-${round}@example.com`, full_name: `round ${round}` },
        { 'idempotency-key': randomUUID() },
      );
      if (created.status !== 201) {
        await pause(created);
        continue;
      }
      const { id } = userIn(created);
      for (let change = chance.below(4); change > 0; change -= 1) {
        await pause(await caller.update(id, { full_name: `round ${round}, change ${change}` }));
      }
      await pause(await caller.read(id));
      if (chance.chance(0.3)) await pause(await caller.remove(id));
    }
    caller.close();
  }

  async function pause({ status }: Entry): Promise<void> {
    if (status === 0 || status >= 400) await sleep(rest);
  }

  return {
    /** From now on a refused writer rests for so many milliseconds. */
    restFor(milliseconds: number) {
      rest = milliseconds;
    },
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(working);
    },
  };
}

/**
 * Sends every create whose outcome is not known again under its key, until it is answered: afterwards the user is there,
 * once. Resolves with the number of those that were settled.
 */
export async function settle(options: CallerOptions & { readonly ledger: Ledger }): Promise<number> {
  const caller = createCaller({ ...options, connections: SETTLERS });
  const unknown = options.ledger.inDoubt.filter(
    (entry) => entry.operation === 'create' && keyOf(entry) !== undefined,
  );
  await sideBySide(SETTLERS, unknown.length, async (n) => {
    const { fields = {}, headers } = unknown[n] as Entry;
    for (;;) {
      const entry = await caller.create(fields, headers);
      if (!isInDoubt(entry) && !isKeyInUse(entry)) return;
      await sleep(REST);
    }
  });
  caller.close();
  return unknown.length;
}
