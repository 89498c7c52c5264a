import { setTimeout as sleep } from 'node:timers/promises';
import { type Entry, type Fields, isInDoubt, isKeyInUse, userIn, versionIn } from '../ledger/ledger.ts';
import type { ServiceUnderFault } from '../stage/stage.ts';
import { type Caller, createCaller } from './caller.ts';
import type { Random } from './random.ts';

/** So many users are about at a time, and so many attempts a key is given. */
const USERS = 12;
const ATTEMPTS = 4;

/**
 * How many addresses there are: the fewer, the more conflicts. For how many milliseconds a caller rests on average. The
 * users that are known, where callers of several instances know the same.
 */
type Habits = { readonly addresses?: number; readonly rest?: number; readonly known?: Known[] };

/** What the callers know of a user: they may all be wrong, as callers are. */
export type Known = { readonly id: string; version: number };

/**
 * Starts so many callers, which create, read, update and delete the same few users, some of it with If-Match, with the
 * version that is or one that was, some creates with an Idempotency-Key and then more than once. What they were answered
 * is in the ledger; whether one order fits it all is for the history to say.
 */
export function startModel(
  { url, token, ledger }: ServiceUnderFault,
  callers: number,
  random: Random,
  { addresses = 40, rest = 0, known = [] }: Habits = {},
) {
  let isStopped = false;
  const working = Array.from({ length: callers }, async () => {
    const caller = createCaller({ url, token, ledger });
    const chance = random.branch();
    while (!isStopped) {
      await act(caller, chance);
      if (rest > 0) await sleep(chance.below(2 * rest));
    }
    caller.close();
  });

  async function act(caller: Caller, chance: Random): Promise<void> {
    const user = known.length > 0 ? chance.pick(known) : undefined;
    const die = chance.next();
    if (!user || known.length < USERS ? die < 0.5 : die < 0.08) return create(caller, chance);
    if (!user) return;
    if (die < 0.3) return learn(user, await caller.read(user.id));
    if (die < 0.92)
      return learn(user, await caller.update(user.id, fieldsOf(chance, addresses), ifMatch(user, chance)));
    const { status } = await caller.remove(user.id, ifMatch(user, chance));
    if (status === 204 || status === 404) forget(user);
  }

  async function create(caller: Caller, chance: Random): Promise<void> {
    const fields = {
      email: address(chance, addresses),
      ...(chance.chance(0.5) && { full_name: name(chance) }),
    };
    const headers = chance.chance(0.6) ? { 'idempotency-key': `key-${chance.next()}` } : undefined;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const entry = await caller.create(fields, headers);
      if (entry.status === 201) remember(entry);
      const isUnknown = isInDoubt(entry) || isKeyInUse(entry);
      // Now and then a request is repeated after its response.
      if (!headers || !(isUnknown || chance.chance(0.3))) return;
    }
  }

  function remember(entry: Entry): void {
    const { id } = userIn(entry);
    if (known.every((user) => user.id !== id)) known.push({ id, version: versionIn(entry) });
    if (known.length > 2 * USERS) known.shift();
  }

  function learn(user: Known, entry: Entry): void {
    if (entry.status === 200) user.version = versionIn(entry);
    if (entry.status === 404) forget(user);
  }

  const forget = (user: Known) => {
    const at = known.indexOf(user);
    if (at >= 0) known.splice(at, 1);
  };

  return {
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(working);
    },
  };
}

function ifMatch({ version }: Known, chance: Random): Record<string, string> {
  if (chance.chance(0.5)) return {};
  const named = chance.chance(0.8) ? version : Math.max(1, version - 1);
  return { 'if-match': `"${named}"` };
}

function fieldsOf(chance: Random, addresses: number): Fields {
  return {
    ...(chance.chance(0.2) && { email: address(chance, addresses) }),
    ...(chance.chance(0.6) && { full_name: chance.chance(0.2) ? null : name(chance) }),
    ...(chance.chance(0.3) && { is_active: chance.chance(0.5) }),
  };
}

const address = (chance: Random, addresses: number) => `model-${chance.below(addresses)}@example.com`;
const name = (chance: Random) => `name ${chance.below(1000)}`;
