import type { Session } from './session.ts';

type Candidate = Pick<Session, 'state' | 'length' | 'isWriting' | 'usedBy'>;

/** The sessions of an executor and of all executors, each in the order in which they were opened, and what limits their use. */
type SessionsAtHand<One extends Candidate> = {
  readonly own: ReadonlySet<One>;
  readonly all: ReadonlySet<One>;
  /** Maximum number of statements in progress in a session. */
  readonly depth: number;
  /** Whether the executor has fewer sessions than its maximum. */
  readonly isMissing: boolean;
  /** Whether PostgreSQL gives no further session. */
  readonly isFull: boolean;
  readonly isAnotherWaiting: boolean;
};

/**
 * The session for a statement of `executor`: an idle one, or, if no further one may be opened, the one of its own
 * with the fewest statements in progress. A write is refused if each session that it may take waits for the end of a
 * statement that was given up.
 */
export function chooseSession<One extends Candidate>(
  isRead: boolean,
  executor: unknown,
  { own, all, depth, isMissing, isFull, isAnotherWaiting }: SessionsAtHand<One>,
): One | 'open another' | 'wait' | 'refuse' {
  const mayOpen = isMissing && !isFull;
  const maxLength = isFull && isAnotherWaiting ? 1 : depth;
  // A read borrows a session if none of its executor can be used.
  const isOut = isRead && own.size > 0 && count(own, isUsable) === 0;
  let found: One | undefined;
  for (const session of isFull || isOut ? all : own) {
    const { length } = session;
    const isBetter = isUsable(session) && length < (found?.length ?? maxLength);
    if (isBetter && (length === 0 || session.usedBy === executor)) found = session;
    if (found?.length === 0) break;
  }
  const isIdle = found?.length === 0;
  if (found && isIdle && (isRead || mayOpen)) return found;
  if (mayOpen) return 'open another';
  if (isRead) return found ?? 'wait';
  const others = isFull ? all : own;
  const [stuck, usable] = [count(others, ({ state }) => state === 'stuck'), count(others, isUsable)];
  // Writes leave one session to reads, unless there is only one.
  const reserved = isFull || depth === 1 ? 1 : 0;
  const readable = count(others, (session) => isUsable(session) && !session.isWriting);
  if (found && (!isIdle || readable > reserved || stuck + usable === 1)) return found;
  return stuck > 0 && usable <= reserved ? 'refuse' : 'wait';
}

/** Whether a statement may be sent over it. */
export function isUsable({ state }: Candidate): boolean {
  return state === 'idle' || state === 'busy';
}

function count<One>(sessions: ReadonlySet<One>, isOne: (session: One) => boolean): number {
  let found = 0;
  for (const session of sessions) if (isOne(session)) found += 1;
  return found;
}
