import {
  type Entry,
  isAcknowledged,
  isInDoubt,
  isReplay,
  keyOf,
  userIn,
  versionIn,
} from '../lab/ledger/ledger.ts';

/** A user as a register: undefined before its creation, null after its deletion. */
export type State =
  | null
  | undefined
  | { version: number; email: string; full_name: string | null; is_active: boolean };

/** A request about one user. `step` returns the state after it, or `never` if its response does not fit the state. */
export type Request = {
  readonly id: string;
  readonly from: number;
  /** `NEVER` for a write in doubt: it may happen at any time after it was sent, or not at all. */
  readonly until: number;
  readonly isOptional: boolean;
  readonly step: (state: State) => State | typeof never;
};

/** The result of a step whose response does not fit the state. */
export const never = Symbol('never');
/** The time of a response that did not come. */
export const NEVER = Number.POSITIVE_INFINITY;

/** The requests whose response says something about a user, by user. */
export function requestsByUser(entries: readonly Entry[]): ReadonlyMap<string, readonly Request[]> {
  const keyed = Map.groupBy(entries.filter(keyOf), (entry) => String(keyOf(entry)));
  const found = entries.flatMap((entry): Request[] => {
    const { operation, userId, sent: from } = entry;
    const id = userId ?? (operation === 'create' && isAcknowledged(entry) ? userIn(entry).id : undefined);
    const step = stepOf(entry);
    if (id === undefined || id.startsWith('?') || !step) return [];
    const isOptional = isInDoubt(entry);
    const request = { id, from, until: isOptional ? NEVER : entry.answered, isOptional, step };
    const isFirst = operation === 'create' && isReplay(entry);
    return isFirst ? [request, ...creationOf(entry, id, keyed)] : [request];
  });
  return Map.groupBy(found, ({ id }) => id);
}

/** The create that the first replay of a key replays, if it has no response: it was sent at an attempt with the key. */
function creationOf(replay: Entry, id: string, keyed: ReadonlyMap<string, readonly Entry[]>): Request[] {
  const attempts = keyed.get(String(keyOf(replay))) ?? [];
  const [first] = attempts.filter(isAcknowledged);
  if (first !== replay || attempts.some((entry) => isAcknowledged(entry) && !isReplay(entry))) return [];
  const step: Request['step'] = (state) => (state === undefined ? created(replay.fields) : never);
  return [{ id, from: Math.min(...attempts.map(({ sent }) => sent)), until: NEVER, isOptional: true, step }];
}

function created({ email = '', full_name = null }: Entry['fields'] = {}): State {
  return { version: 1, email, full_name, is_active: true };
}

/** Undefined for a response that says nothing about the state. */
function stepOf(entry: Entry): Request['step'] | undefined {
  const { operation, status, fields = {}, headers } = entry;
  const wanted = headers?.['if-match'];
  const holds = (state: State) => state && (wanted === undefined || wanted === `"${state.version}"`);
  const write = (state: State): State | typeof never => {
    if (!state || !holds(state)) return never;
    if (operation === 'delete') return null;
    const given = Object.fromEntries(
      Object.entries(fields).filter(([name, value]) => value !== null || name === 'full_name'),
    );
    return { ...state, ...given, version: state.version + 1 };
  };
  const isWrite = operation === 'update' || operation === 'delete';

  if (isInDoubt(entry)) return isWrite && !entry.isUnsent ? write : undefined;
  if (status === 404) return (state) => (state ? never : state);
  if (status === 412) return (state) => (state && !holds(state) ? state : never);
  if (status === 409 && operation === 'update') return (state) => (holds(state) ? state : never);
  if (operation === 'delete' && status === 204) return write;
  if (status !== 200 && status !== 201) return undefined;
  const seen = (state: State | typeof never) =>
    state !== never && state && isAsSeen(entry, state) ? state : never;
  if (operation === 'create' && !isReplay(entry))
    return (state) => (state === undefined ? seen(created(fields)) : never);
  return operation === 'update' ? (state) => seen(write(state)) : seen;
}

function isAsSeen(entry: Entry, { version, email, full_name, is_active }: NonNullable<State>): boolean {
  const user = userIn(entry);
  const isSame = user.email === email && user.full_name === full_name && user.is_active === is_active;
  return isSame && versionIn(entry) === version;
}
