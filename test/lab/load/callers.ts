import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Entry,
  type Fields,
  isInDoubt,
  isKeyInUse,
  isRefused,
  keyOf,
  type Ledger,
  userIn,
  versionIn,
} from '../ledger/ledger.ts';
import { type Caller, type CallerOptions, createCaller } from './caller.ts';
import type { Random } from './random.ts';

/** Users that exist at a time, and attempts for one key. */
const USERS = 12;
const ATTEMPTS = 4;

/** Pause after a 5xx or a lost connection: short enough to see the first success early. */
const PAUSE_AFTER_REFUSAL_MS = 40;

/** Creates in doubt that are settled at once. */
const SETTLED_AT_ONCE = 16;

/** What callers assume about a user. It may be wrong, because others change the user, too. */
export type Known = { readonly id: string; version: number };

type Habits = {
  /** Callers with users of their own, all of whose creates have a key: nothing that they send conflicts. */
  readonly areAlone?: boolean;
  /** Number of addresses of callers that share users: the fewer, the more conflicts. */
  readonly addresses?: number;
  /** Mean pause between two requests of a caller. */
  readonly pauseMs?: number;
  /** The users of callers that share them, if callers of several instances do. */
  readonly known?: Known[];
};

let created = 0;

/**
 * Starts callers that create, read, update and delete users. Unless they are alone, they share a few users, with and
 * without If-Match, with the current version or an old one, and some of them repeat creates with an Idempotency-Key. The
 * responses are in the ledger. The history says whether one order fits all of them.
 */
export function startCallers(
  options: Omit<CallerOptions, 'connections'>,
  callers: number,
  random: Random,
  { areAlone = false, addresses = 40, pauseMs = 0, known = [] }: Habits = {},
) {
  let isStopped = false;
  const working = Array.from({ length: callers }, () => call(random.branch(), areAlone ? [] : known));

  async function call(chance: Random, users: Known[]): Promise<void> {
    const caller = createCaller(options);
    while (!isStopped) {
      const entry = await act(caller, chance, users);
      if (isRefused(entry)) await sleep(PAUSE_AFTER_REFUSAL_MS);
      else if (pauseMs > 0) await sleep(chance.below(2 * pauseMs));
    }
    caller.close();
  }

  async function act(caller: Caller, chance: Random, users: Known[]): Promise<Entry> {
    const user = users.length > 0 ? chance.pick(users) : undefined;
    const die = chance.next();
    if (!user || die < (users.length < USERS ? 0.5 : 0.08)) return create(caller, chance, users);
    const headers = areAlone ? {} : ifMatch(user, chance);
    const entry = await (die < 0.3
      ? caller.read(user.id)
      : die < 0.92
        ? caller.update(user.id, changesOf(chance), headers)
        : caller.remove(user.id, headers));
    if (entry.status === 200) user.version = versionIn(entry);
    // A caller that is alone does not ask for a user that it may have deleted.
    const isGone = entry.status === 204 || entry.status === 404 || (areAlone && entry.operation === 'delete');
    const at = users.indexOf(user);
    if (isGone && at >= 0) users.splice(at, 1);
    return entry;
  }

  async function create(caller: Caller, chance: Random, users: Known[]): Promise<Entry> {
    created += 1;
    const email = areAlone ? `alone-${created}@example.com` : addressBy(chance);
    const fields = { email, ...(chance.chance(0.5) && { full_name: nameBy(chance) }) };
    const headers = areAlone || chance.chance(0.6) ? { 'idempotency-key': randomUUID() } : undefined;
    for (let attempt = 1; ; attempt += 1) {
      const entry = await caller.create(fields, headers);
      if (entry.status === 201) remember(entry, users);
      const isUnknown = isInDoubt(entry) || isKeyInUse(entry);
      // Now and then a request is repeated after its response.
      const isRepeated = headers && !areAlone && (isUnknown || chance.chance(0.3));
      if (!isRepeated || attempt === ATTEMPTS) return entry;
    }
  }

  function remember(entry: Entry, users: Known[]): void {
    const { id } = userIn(entry);
    if (users.every((user) => user.id !== id)) users.push({ id, version: versionIn(entry) });
    if (users.length > 2 * USERS) users.shift();
  }

  function addressBy(chance: Random): string {
    return `model-${chance.below(addresses)}@example.com`;
  }

  function changesOf(chance: Random): Fields {
    return {
      ...(!areAlone && chance.chance(0.2) && { email: addressBy(chance) }),
      ...(chance.chance(0.6) && { full_name: chance.chance(0.2) ? null : nameBy(chance) }),
      ...(chance.chance(0.3) && { is_active: chance.chance(0.5) }),
    };
  }

  return {
    /** Lets each caller finish what it has begun. */
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(working);
    },
  };
}

const nameBy = (chance: Random) => `name ${chance.below(1000)}`;

function ifMatch({ version }: Known, chance: Random): Record<string, string> {
  if (chance.chance(0.5)) return {};
  return { 'if-match': `"${chance.chance(0.8) ? version : Math.max(1, version - 1)}"` };
}

/**
 * Sends every create whose outcome is unknown again under its key, until it is answered: afterwards the user is there,
 * once.
 */
export async function settle(options: CallerOptions & { readonly ledger: Ledger }): Promise<void> {
  const caller = createCaller({ ...options, connections: SETTLED_AT_ONCE });
  const unknown = options.ledger.inDoubt.filter(
    (entry) => entry.operation === 'create' && keyOf(entry) !== undefined,
  );
  await sideBySide(SETTLED_AT_ONCE, unknown.length, async (n) => {
    const { fields = {}, headers } = unknown[n] as Entry;
    for (;;) {
      const entry = await caller.create(fields, headers);
      if (!isInDoubt(entry) && !isKeyInUse(entry)) return;
      await sleep(PAUSE_AFTER_REFUSAL_MS);
    }
  });
  caller.close();
}

/** Does a piece of work `times` times, by `workers` workers at once. Each piece has its number. */
export async function sideBySide(
  workers: number,
  times: number,
  work: (number: number) => Promise<unknown>,
): Promise<void> {
  const numbers = Array(times).keys();
  const toil = async () => {
    for (const number of numbers) await work(number);
  };
  await Promise.all(Array.from({ length: workers }, toil));
}
