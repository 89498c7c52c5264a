import type { Ledger } from '../lab/ledger/ledger.ts';
import { NEVER, never, type Request, requestsByUser, type State } from './user-register.ts';

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
