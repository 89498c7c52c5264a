import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../problem.ts';
import { isOfOneItem } from '../faults.ts';
import { atEndOfTurn } from './end-of-turn.ts';
import { rejectAll, tellRows } from './gathered.ts';
import type { StatementText } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { createTimeLimits } from './time-limits.ts';
import { cancelled, noAnswer, noConnection, type Way } from './way.ts';
import { partsOf, takeGroup, valuesOf, type WaitingWrite } from './write-group.ts';

type Options = {
  /** How many groups of one statement may be on their way. */
  readonly mostGroups: number;
  /** How many may wait for each statement. */
  readonly mostWaiting: number;
  /** For how long a write waits before it is sent, in milliseconds. */
  readonly poolTimeLimit: number;
};

/** The writes of one statement. */
type Queue = {
  readonly text: StatementText;
  readonly waiting: ChurningSet<WaitingWrite>;
  /** Groups on their way, and those of them that are late. */
  groups: number;
  late: number;
  isScheduled: boolean;
};

/** In milliseconds: a group that is on its way for longer waits for a lock, or for its connection, and others go past it. */
const LATE = 5;

/**
 * Writes, each a statement whose values are lists of one, the first of them the id that its row is to have: while a
 * statement is on its way the next ones gather, so that one carries out many and is made durable once. No group has an
 * id twice, so that the writes of one user are carried out one after another. A group is written as a whole or not at
 * all; when it fails for what may be the fault of one, it is sent in parts, and at last one by one, so that each has its
 * own answer.
 */
export function gatheringWrites(way: Way, { mostGroups, mostWaiting, poolTimeLimit }: Options): Way {
  const queues = new Map<StatementText, Queue>();
  const limits = createTimeLimits(() => false);
  let isCancelled = false;

  function send(text: StatementText, values: readonly unknown[], deadline: number) {
    return new Promise<readonly Row[]>((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      const queue = queueOf(text);
      if (queue.waiting.size >= mostWaiting)
        return reject(unavailable('too many requests wait for a connection'));
      const lists = values as readonly (readonly unknown[])[];
      const [[id = ''] = []] = lists as readonly (readonly string[])[];
      const waiting: WaitingWrite = {
        id: id.toLowerCase(),
        values: lists,
        deadline,
        until: Math.min(deadline, performance.now() + poolTimeLimit),
        isSent: false,
        giveUp() {
          queue.waiting.delete(waiting);
          waiting.reject(waiting.isSent ? noAnswer() : noConnection());
        },
        resolve(rows) {
          limits.delete(waiting);
          resolve(rows);
        },
        reject(reason) {
          limits.delete(waiting);
          reject(reason);
        },
      };
      limits.add(waiting);
      queue.waiting.add(waiting);
      schedule(queue);
    });
  }

  function queueOf(text: StatementText): Queue {
    const known = queues.get(text);
    if (known) return known;
    const added: Queue = { text, waiting: new ChurningSet(), groups: 0, late: 0, isScheduled: false };
    queues.set(text, added);
    return added;
  }

  /** All that came in one turn of the event loop go together. */
  function schedule(queue: Queue): void {
    const { waiting, groups, late, isScheduled } = queue;
    if (isScheduled || waiting.size === 0 || groups > late || groups >= mostGroups) return;
    queue.isScheduled = true;
    atEndOfTurn(() => sendGroup(queue));
  }

  function sendGroup(queue: Queue): void {
    queue.isScheduled = false;
    const group = takeGroup(queue.waiting);
    if (group.length === 0) return;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      queue.late += 1;
      schedule(queue);
    }, LATE);
    queue.groups += 1;
    carryOut(queue.text, group, () => {
      clearTimeout(timer);
      queue.groups -= 1;
      if (isLate) queue.late -= 1;
      schedule(queue);
    });
  }

  function carryOut(text: StatementText, group: readonly WaitingWrite[], onEnd: () => void): void {
    way.send(text, valuesOf(group), Math.max(...group.map(({ deadline }) => deadline))).then(
      (rows) => {
        tellRows(group, rows);
        onEnd();
      },
      (fault) => {
        const isOfOne = group.length > 1 && isOfOneItem(fault);
        const parts = isOfOne ? partsOf(group) : [];
        if (parts.length > 0) return carryOutParts(text, parts, onEnd);
        // No time is left to find the one at fault.
        rejectAll(group, isOfOne ? noAnswer() : fault);
        onEnd();
      },
    );
  }

  function carryOutParts(
    text: StatementText,
    parts: readonly (readonly WaitingWrite[])[],
    onEnd: () => void,
  ): void {
    let left = parts.length;
    for (const part of parts) {
      carryOut(text, part, () => {
        left -= 1;
        if (left === 0) onEnd();
      });
    }
  }

  return {
    send,
    get waitingCount() {
      let count = 0;
      for (const { waiting } of queues.values()) count += waiting.size;
      return count;
    },
    cancel() {
      isCancelled = true;
      for (const { waiting } of queues.values()) {
        rejectAll(waiting, cancelled());
        waiting.clear();
      }
    },
  };
}
