import { Problem, unavailable } from '../../problem.ts';
import { hasLostConnection, isLockTimeout, isStalePlan } from '../faults.ts';
import { atEndOfTurn } from './end-of-turn.ts';
import { type Gathered, rejectAll, tellRows } from './gathered.ts';
import type { StatementText } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { lookingWhile } from './time-limits.ts';
import { cancelled, noAnswer, noConnection, type Way } from './way.ts';

type Options = {
  /** Each for one statement at a time: the first for all, the others for what goes past it. */
  readonly ways: readonly Way[];
  /** How many may wait for each statement. */
  readonly mostWaiting: number;
  /** For how long a lookup waits before it is sent, in milliseconds. */
  readonly poolTimeLimit: number;
};

/** Somebody who waits: `until` it has to be sent, and then until its deadline; moments of `performance.now()`. */
type Lookup = Gathered & { readonly deadline: number; readonly until: number };

/** The lookups of one statement, which was sent this way at `sentAt`. */
type Group = { lookups: Lookup[]; readonly way: Way; readonly sentAt: number; isLate: boolean };

/** The lookups of one text. */
type Queue = {
  readonly text: StatementText;
  waiting: Lookup[];
  /** On their way. */
  groups: readonly Group[];
  isScheduled: boolean;
};

/** In ids: what one statement reads at most. */
const LARGEST = 256;

/** In milliseconds: a group that is on its way for longer is held up, and the next goes past it. */
const LATE = 0.5;

/**
 * Lookups, each a statement whose only value is a list of one id and whose rows have an `id`: those that come in one turn
 * of the event loop, and while others are on their way, are one statement. Of those that were answered none has been sent
 * before it came, so that it sees every write that was acknowledged by then.
 *
 * With 64 callers it takes PostgreSQL's part of a read from 20 to 8 microseconds, and the server's from 51 to 44. Where
 * callers leave pauses, to wait for the end of the turn saves a ninth of the statements, and 5 % of the server's part.
 *
 * PostgreSQL's process has to wait for a processor now and then, 3 to 6 milliseconds where others have work, and all reads
 * would wait with it. Others go past it then, one statement at a time, by another connection.
 */
export function gatheringLookups({ ways, mostWaiting, poolTimeLimit }: Options): Way {
  const queues = new Map<StatementText, Queue>();
  const startLooking = lookingWhile(look);
  let isCancelled = false;

  function send(text: StatementText, values: readonly unknown[], deadline: number) {
    return new Promise<readonly Row[]>((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      const queue = queueOf(text);
      if (queue.waiting.length >= mostWaiting)
        return reject(unavailable('too many requests wait for a connection'));
      const [[id = '']] = values as [string[]];
      const until = Math.min(deadline, performance.now() + poolTimeLimit);
      queue.waiting.push({ id: id.toLowerCase(), deadline, until, resolve, reject });
      startLooking();
      schedule(queue);
    });
  }

  function queueOf(text: StatementText): Queue {
    const known = queues.get(text);
    if (known) return known;
    const added: Queue = { text, waiting: [], groups: [], isScheduled: false };
    queues.set(text, added);
    return added;
  }

  function schedule(queue: Queue): void {
    if (queue.isScheduled || queue.waiting.length === 0) return;
    queue.isScheduled = true;
    atEndOfTurn(() => void sendGroup(queue));
  }

  async function sendGroup(queue: Queue): Promise<void> {
    queue.isScheduled = false;
    const way = freeWay(queue.groups);
    const lookups = way ? queue.waiting.splice(0, LARGEST) : [];
    if (!way || lookups.length === 0) return;
    const group = { lookups, way, sentAt: performance.now(), isLate: false };
    queue.groups = [...queue.groups, group];
    await answer(way, queue.text, lookups);
    queue.groups = queue.groups.filter((other) => other !== group);
    schedule(queue);
  }

  function freeWay(groups: readonly Group[]): Way | undefined {
    if (!groups.every(isHeldUp)) return undefined;
    return ways.find((way) => groups.every((group) => group.way !== way));
  }

  async function answer(way: Way, text: StatementText, group: readonly Lookup[]): Promise<void> {
    const ids = [...new Set(group.map(({ id }) => id))];
    try {
      tellRows(group, await way.send(text, [ids], Math.max(...group.map(({ deadline }) => deadline))));
    } catch (fault) {
      if (group.length === 1 || isOfAll(fault)) rejectAll(group, fault);
      else await Promise.all(group.map((lookup) => answer(way, text, [lookup])));
    }
  }

  /** Gives up whose time is up, sends who waits, and gives whether there is more to look at. */
  function look(): boolean {
    const now = performance.now();
    let isAnyLeft = false;
    for (const queue of queues.values()) {
      for (const group of queue.groups) group.lookups = inTime(group.lookups, 'deadline', now);
      queue.waiting = inTime(queue.waiting, 'until', now);
      schedule(queue);
      isAnyLeft ||= queue.waiting.length > 0 || queue.groups.length > 0;
    }
    return isAnyLeft;
  }

  return {
    send,
    get waitingCount() {
      let count = 0;
      for (const { waiting } of queues.values()) count += waiting.length;
      return count;
    },
    cancel() {
      isCancelled = true;
      for (const way of ways) way.cancel();
      for (const queue of queues.values()) rejectAll(queue.waiting.splice(0), cancelled());
    },
  };
}

/** Asked at the end of a turn. An answer that came by the end of an earlier one would have been read since. */
function isHeldUp(group: Group): boolean {
  const wasLate = group.isLate;
  group.isLate ||= performance.now() - group.sentAt > LATE;
  return wasLate;
}

/** Those whose time is not up; the others are rejected. */
function inTime(lookups: Lookup[], limit: 'deadline' | 'until', now: number): Lookup[] {
  const isInTime = (lookup: Lookup) => lookup[limit] > now;
  if (lookups.every(isInTime)) return lookups;
  rejectAll(
    lookups.filter((lookup) => !isInTime(lookup)),
    limit === 'until' ? noConnection() : noAnswer(),
  );
  return lookups.filter(isInTime);
}

/** Whether none of the ids can be the cause; any other fault may be that of one, and the others are to be answered. */
function isOfAll(fault: unknown): boolean {
  return fault instanceof Problem || hasLostConnection(fault) || isLockTimeout(fault) || isStalePlan(fault);
}
