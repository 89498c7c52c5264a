import {
  type Entry,
  isAcknowledged,
  isInDoubt,
  isReplay,
  keyOf,
  type Ledger,
  userIn,
  versionIn,
} from '../lab/ledger/ledger.ts';

/** A user as a register: undefined before its creation, null after its deletion. */
type State =
  | null
  | undefined
  | { version: number; email: string; full_name: string | null; is_active: boolean };

/** A request about one user. `step` returns the state after it, or `never` if its response does not fit the state. */
type Request = {
  readonly id: string;
  readonly from: number;
  /** Infinity for a write in doubt: it may happen at any time after it was sent, or not at all. */
  readonly until: number;
  readonly isOptional: boolean;
  readonly step: (state: State) => State | typeof never;
};

const never = Symbol('never');
const NEVER = Number.POSITIVE_INFINITY;

/** More states than this are not visited for one user, because the search is exponential in the writes in doubt. */
const MAX_STATES = 200_000;

/**
 * Whether the responses about each user fit a register that executes one request at a time, between the sending and the
 * arrival of its response: Wing and Gong's search with Lowe's memory of visited states. It uses requests and responses
 * only, neither the changes nor the table. Returns a sentence for each user for which there is no such order.
 */
export function faultsInRegisters(ledger: Ledger): string[] {
  return [...requestsByUser(ledger.entries)].flatMap(([id, requests]) => {
    const result = isLinearizable(requests);
    if (result === true) return [];
    const reason = result === false ? 'no order of its requests fits their responses' : 'too many states';
    return [`${id}, ${requests.length} requests: ${reason}`];
  });
}

/** Undefined if the search was given up. */
function isLinearizable(requests: readonly Request[]): boolean | undefined {
  const sorted = requests.toSorted((one, other) => one.from - other.from);
  const visited = new Set<string>();
  // Done are all requests before `first`, and those in `done` (ascending) after it.
  const pending: { first: number; done: readonly number[]; state: State }[] = [
    { first: 0, done: [], state: undefined },
  ];
  for (let point = pending.pop(); point; point = pending.pop()) {
    const { first, done, state } = point;
    if (visited.size > MAX_STATES) return undefined;
    // A request can be next if no other one was answered before it was sent.
    let earliest = NEVER;
    let isOver = true;
    let moves: typeof pending = [];
    const doubtful: typeof pending = [];
    for (let index = first; index < sorted.length; index += 1) {
      const request = sorted[index] as Request;
      if (request.from > earliest) break;
      if (done.includes(index)) continue;
      isOver &&= request.isOptional;
      earliest = Math.min(earliest, request.until);
      const next = request.step(state);
      if (next === never) continue;
      const move = { ...withDone(first, done, index), state: next };
      (request.isOptional ? doubtful : moves).unshift(move);
      // A request that fits and changes nothing may as well be the next one: no other order has to be tried.
      if (next !== state) continue;
      doubtful.length = 0;
      moves = [move];
      break;
    }
    // The loop ends early only behind a request that was answered.
    if (isOver) return true;
    // The last one is tried first: the earliest request that was answered, and writes in doubt only if nothing else fits.
    for (const move of [...doubtful, ...moves]) {
      const key = JSON.stringify([move.first, move.done, move.state ?? String(move.state)]);
      if (visited.has(key)) continue;
      visited.add(key);
      pending.push(move);
    }
  }
  return false;
}

function withDone(first: number, done: readonly number[], index: number) {
  const all = new Set([...done, index]);
  let next = first;
  while (all.delete(next)) next += 1;
  return { first: next, done: [...all].sort((one, other) => one - other) };
}

/** The requests whose response says something about a user, by user. */
function requestsByUser(entries: readonly Entry[]): ReadonlyMap<string, readonly Request[]> {
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

  if (isInDoubt(entry)) return isWrite ? write : undefined;
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
