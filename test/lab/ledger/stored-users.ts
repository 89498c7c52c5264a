import { type Entry, isAcknowledged, isInDoubt, isReplay, keyOf, type Ledger, userIdOf } from './ledger.ts';

/** A user as it is stored. */
export type StoredUser = {
  readonly id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly is_active: boolean;
  readonly version: number;
};

/** The whole table of users. */
export async function storedUsers(postgres: { query(sql: string): Promise<readonly unknown[]> }) {
  const rows = await postgres.query(
    'SELECT id, email, full_name, is_active, version::int FROM users ORDER BY created_at, id',
  );
  return rows as readonly StoredUser[];
}

/**
 * Holds the ledger against the table, both ways: what was acknowledged is there, once, as it was last acknowledged, and
 * what was deleted is not; and nothing is there that nobody asked for. What is in doubt may be there or not, and may
 * have happened at any time after it was sent. Resolves with a sentence for each fault.
 */
export function faultsInTable(ledger: Ledger, stored: readonly StoredUser[]): string[] {
  const byId = new Map(stored.map((user) => [user.id, user]));
  const writes = writesByUser(ledger);
  const faults: string[] = [];
  for (const [id, entries] of writes) faults.push(...faultsOfUser(id, entries, byId.get(id)));

  const unknown = stored.filter(({ id }) => !writes.has(id));
  const creates = attempts(ledger).filter((attempt) => !attempt.some(isAcknowledged));
  const doubtful = creates.filter((attempt) => attempt.some(isInDoubt));
  if (unknown.length > doubtful.length) {
    faults.push(
      `${unknown.length} users without an acknowledgement, and only ${doubtful.length} creates in doubt`,
    );
  }
  return faults;
}

/** The creates, those with one key together. */
function attempts(ledger: Ledger): readonly (readonly Entry[])[] {
  const creates = ledger.entries.filter(({ operation }) => operation === 'create');
  return [...Map.groupBy(creates, (entry) => keyOf(entry) ?? entry.requestId).values()];
}

/** The writes about each user whose creation was acknowledged; a replay is no write of its own. */
function writesByUser(ledger: Ledger): ReadonlyMap<string, readonly Entry[]> {
  const created = new Set(
    ledger.acknowledged.flatMap((entry) => (entry.operation === 'create' ? (userIdOf(entry) ?? []) : [])),
  );
  const writes = ledger.entries.filter((entry) => {
    const isWrite = isAcknowledged(entry) || isInDoubt(entry);
    return isWrite && created.has(userIdOf(entry) ?? '');
  });
  return Map.groupBy(writes, (entry) => userIdOf(entry) as string);
}

function faultsOfUser(id: string, entries: readonly Entry[], user: StoredUser | undefined): string[] {
  const deletions = entries.filter(({ operation }) => operation === 'delete');
  if (!user) return deletions.length > 0 ? [] : [`${id} was acknowledged, and is not there`];
  if (deletions.some(isAcknowledged)) return [`${id} was deleted, and has risen again`];

  const faults: string[] = [];
  const updates = entries.filter(({ operation }) => operation === 'update');
  const certain = updates.filter(isAcknowledged).length;
  const most = 1 + updates.length;
  if (user.version < 1 + certain) faults.push(`${id} has version ${user.version}, after ${certain} updates`);
  if (user.version > most)
    faults.push(`${id} has version ${user.version}, though only ${most} were asked for`);
  for (const field of ['email', 'full_name', 'is_active'] as const) {
    const last = lastWritten(entries, field);
    if (last.length > 0 && !last.includes(user[field])) {
      faults.push(`${id} has ${field} ${user[field]}, and was left with ${last.join(' or ')}`);
    }
  }
  return faults;
}

/** The values that a field may have in the end: of writes that no later one has certainly overtaken. */
function lastWritten(entries: readonly Entry[], field: keyof typeof DEFAULTS): unknown[] {
  const writers = entries.filter((entry) => !isReplay(entry) && valueIn(entry, field) !== undefined);
  const isOvertaken = (entry: Entry) =>
    isAcknowledged(entry) && writers.some((other) => isAcknowledged(other) && other.sent > entry.answered);
  return writers.filter((entry) => !isOvertaken(entry)).map((entry) => valueIn(entry, field));
}

/** What a user has that was created without. */
const DEFAULTS = { email: undefined, full_name: null, is_active: true } as const;

function valueIn({ operation, fields }: Entry, field: keyof typeof DEFAULTS): unknown {
  if (operation === 'delete') return undefined;
  return fields?.[field] ?? (operation === 'create' ? DEFAULTS[field] : fields?.[field]);
}
