import { type Change, positionOf } from './changes.ts';
import {
  type Entry,
  type Fields,
  isAcknowledged,
  isInDoubt,
  isKeyInUse,
  isReplay,
  keyOf,
  type Ledger,
  userIn,
  versionIn,
} from './ledger.ts';

export type StoredUser = {
  readonly id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly is_active: boolean;
  readonly version: number;
};

export async function storedUsers(postgres: { query(sql: string): Promise<readonly unknown[]> }) {
  const rows = await postgres.query('SELECT id, email, full_name, is_active, version::int FROM users');
  return rows as readonly StoredUser[];
}

/** A user at one of its versions, who wrote that, and when it can have come about. */
type Version = {
  readonly number: number;
  readonly type: Change['type'];
  readonly email: string;
  readonly full_name: string | null;
  readonly is_active: boolean;
  readonly time: string;
  readonly entry: Entry;
};

const FIELDS = ['email', 'full_name', 'is_active'] as const;

/**
 * Holds ledger, changes and table against each other: every acknowledged write has one change, no other has, and for
 * each user there is one order, that of its versions, in which all that was answered is right: writes, reads and
 * refusals alike, none earlier than it was sent and none later than it was answered. Returns a sentence for each fault.
 */
export function faultsInHistory(
  ledger: Ledger,
  changes: readonly Change[],
  stored: readonly StoredUser[],
): string[] {
  const entries = new Map(ledger.entries.map((entry) => [entry.requestId, entry]));
  const faults: string[] = [];
  const histories = new Map<string, Version[]>();
  for (const change of changes) {
    const entry = entries.get(change.data.request_id);
    if (!entry) faults.push(`change ${change.id} is of a request that was not sent`);
    else faults.push(...append(histories, change, entry));
  }
  const holders = holdersOf(histories);
  return [
    ...faults,
    ...faultsInOrder(changes, entries),
    ...faultsInCounts(ledger, changes),
    ...ledger.entries.flatMap((entry) => faultsOfResponse(entry, histories, holders)),
    ...faultsInEnd(histories, stored),
  ];
}

/** Adds the version that a change describes. Returns what does not fit the version before. */
function append(histories: Map<string, Version[]>, change: Change, entry: Entry): string[] {
  const { subject, type, time, data } = change;
  const history = histories.get(subject) ?? [];
  const before = history.at(-1);
  histories.set(subject, history);
  const text = `change ${change.id} of ${subject}`;
  if (isAcknowledged(entry) === false && !isInDoubt(entry))
    return [`${text} was refused with ${entry.status}`];
  if (type !== `user.${entry.operation}d`) return [`${text} is ${type}, for a request to ${entry.operation}`];
  if (data.version !== history.length + 1)
    return [`${text} has version ${data.version} after ${history.length}`];
  if ((before === undefined) !== (type === 'user.created'))
    return [`${text} is ${type} as number ${data.version}`];
  if (before?.type === 'user.deleted') return [`${text} comes after its deletion`];
  if (entry.userId !== undefined && entry.userId !== subject)
    return [`${text} was asked for ${entry.userId}`];

  const next = { ...stateAfter(before, entry.fields), number: data.version, type, time, entry };
  history.push(next);
  const changed = type === 'user.updated' ? FIELDS.filter((field) => next[field] !== before?.[field]) : [];
  if (changed.toSorted().join() !== data.changed.toSorted().join()) {
    return [`${text} changed ${changed}, and names ${data.changed}`];
  }
  return [];
}

function stateAfter(before: Version | undefined, fields: Fields = {}) {
  return {
    email: fields.email ?? before?.email ?? '',
    full_name: fields.full_name === undefined ? (before?.full_name ?? null) : fields.full_name,
    is_active: before ? (fields.is_active ?? before.is_active) : true,
  };
}

/** A write that began after another was answered stands after it. */
function faultsInOrder(changes: readonly Change[], entries: ReadonlyMap<string, Entry>): string[] {
  const faults: string[] = [];
  let latestSent = Number.NEGATIVE_INFINITY;
  let position = 0n;
  for (const change of changes) {
    const { id, data } = change;
    if (positionOf(change) <= position) faults.push(`position ${id} comes after ${position}`);
    position = positionOf(change);
    const entry = entries.get(data.request_id);
    if (!entry) continue;
    if (latestMoment(entry) < latestSent)
      faults.push(`change ${id} comes after one that began when it was answered`);
    latestSent = Math.max(latestSent, entry.sent);
  }
  return faults;
}

/** Acknowledged once is changed once; what is in doubt may be; a replay is not, since its first request is. */
function faultsInCounts(ledger: Ledger, changes: readonly Change[]): string[] {
  const byRequest = Map.groupBy(changes, ({ data }) => data.request_id);
  return ledger.acknowledged.flatMap((entry) => {
    const count = byRequest.get(entry.requestId)?.length ?? 0;
    const expected = isReplay(entry) ? 0 : 1;
    return count === expected ? [] : [`${entry.operation} ${entry.requestId} has ${count} changes`];
  });
}

/** Whether an answer can be right: some version that it fits was there between its sending and its arrival. */
function faultsOfResponse(
  entry: Entry,
  histories: ReadonlyMap<string, readonly Version[]>,
  holders: Holders,
): string[] {
  const { operation, status, headers = {} } = entry;
  if (status === 0 || status >= 500 || isOfList(entry)) return [];
  const id = entry.userId ?? (isAcknowledged(entry) ? userIn(entry).id : undefined);
  const history = (id && histories.get(id)) || [];
  const text = `${operation} ${status} of ${id}`;
  const possible = history.filter((version, index) => wasCurrent(entry, version, history[index + 1]));
  const isSeen = () => possible.some((version) => fits(entry, version));
  const wanted = Number(/"(\d+)"/.exec(headers['if-match'] ?? '')?.[1]);

  if (operation === 'read' && status === 200)
    return isSeen() ? [] : [`${text} has never been so: ${entry.body}`];
  if (status === 404) {
    const isGone = possible.some(({ type }) => type === 'user.deleted') || history.length === 0;
    return isGone ? [] : [`${text}, though it was there`];
  }
  if (status === 412) {
    const isOther = possible.some(({ number, type }) => number !== wanted && type !== 'user.deleted');
    return isOther ? [] : [`${text}, though it had version ${wanted} all the while`];
  }
  if (status === 409 && !isKeyInUse(entry)) {
    return isTaken(entry, holders) ? [] : [`${text}, though no user had ${entry.fields?.email}`];
  }
  if (status === 410) return wasDeleted(entry, histories) ? [] : [`${text}, though it was not deleted`];
  if (!isAcknowledged(entry)) return [];
  if (isReplay(entry)) return isSeen() ? [] : [`the replay of ${id} has never been so`];
  const own = history.find((version) => version.entry === entry);
  if (!own) return [`${text} has no version of its own`];
  if (operation !== 'delete' && !fits(entry, own))
    return [`${text} is not as version ${own.number}: ${entry.body}`];
  if (headers['if-match'] && own.number !== wanted + 1)
    return [`${text} was for version ${wanted}, not ${own.number}`];
  return [];
}

/** A read of no one user: the part of the path after `users/` is a query. */
const isOfList = ({ userId }: Entry): boolean => userId?.startsWith('?') === true;

/** Who had which address, and from which version to which. */
type Holders = ReadonlyMap<string, readonly { id: string; version: Version; next: Version | undefined }[]>;

function holdersOf(histories: ReadonlyMap<string, readonly Version[]>): Holders {
  const held = [...histories].flatMap(([id, history]) =>
    history.map((version, index) => ({ id, version, next: history[index + 1] })),
  );
  const live = held.filter(({ version }) => version.type !== 'user.deleted');
  return Map.groupBy(live, ({ version }) => version.email.toLowerCase());
}

/** Whether another user can have had the address that was asked for. */
function isTaken(entry: Entry, holders: Holders): boolean {
  const holding = holders.get(entry.fields?.email?.toLowerCase() ?? '') ?? [];
  return holding.some(({ id, version, next }) => id !== entry.userId && wasCurrent(entry, version, next));
}

/** Whether the user that this key made can have been deleted by then. */
function wasDeleted(entry: Entry, histories: ReadonlyMap<string, readonly Version[]>): boolean {
  return [...histories.values()].some(
    ([first, ...later]) =>
      first !== undefined &&
      keyOf(first.entry) === keyOf(entry) &&
      later.some((version) => version.type === 'user.deleted' && wasCurrent(entry, version, undefined)),
  );
}

/** Whether this can have been the version at some moment between a request's sending and its answer. */
function wasCurrent(entry: Entry, version: Version, next: Version | undefined): boolean {
  return (
    version.entry.sent <= entry.answered && (next === undefined || latestMoment(next.entry) >= entry.sent)
  );
}

/** Until when a write can have happened: what is in doubt may still be under way after its answer. */
const latestMoment = (entry: Entry): number => (isInDoubt(entry) ? Number.POSITIVE_INFINITY : entry.answered);

function fits(entry: Entry, { number, email, full_name, is_active, time, type }: Version): boolean {
  const user = userIn(entry);
  return (
    type !== 'user.deleted' &&
    versionIn(entry) === number &&
    user.email === email &&
    user.full_name === full_name &&
    user.is_active === is_active &&
    user.updated_at === time
  );
}

/** The last version of each user is what the table has. */
function faultsInEnd(
  histories: ReadonlyMap<string, readonly Version[]>,
  stored: readonly StoredUser[],
): string[] {
  const byId = new Map(stored.map((user) => [user.id, user]));
  const faults = stored
    .filter(({ id }) => !histories.has(id))
    .map(({ id }) => `${id} is in the table, and no change names it`);
  for (const [id, history] of histories) {
    const last = history.at(-1);
    const user = byId.get(id);
    if (!last) continue;
    const isRight =
      last.type === 'user.deleted'
        ? !user
        : user?.version === last.number && FIELDS.every((field) => user[field] === last[field]);
    if (!isRight) faults.push(`${id} is not in the table as its version ${last.number}`);
  }
  return faults;
}
