import { ChurningSet } from '../../churning-set.ts';
import { Problem, unavailable } from '../../problem.ts';
import { hasLostConnection, isLockTimeout, isStalePlan } from '../faults.ts';
import { cancelAll, countAll, type Gathered, tellRows } from './gathered.ts';
import type { StatementText } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { createTimeLimits } from './time-limits.ts';
import { cancelled, outOfTime, type Way } from './way.ts';

/** In ids: what one statement reads at most. */
const LARGEST = 256;

/**
 * Lookups, each a statement whose only value is a list of one id and whose rows have an `id`: while one is on its way the
 * next gathers, so that one statement answers many. A lookup that comes alone goes at once. Of those that were answered
 * none has been sent before it came, so that it sees every write that was acknowledged by then.
 *
 * With 64 callers it takes PostgreSQL's part of a read from 20 to 8 microseconds, and the server's from 51 to 44.
 */
export function gatheringLookups(way: Way, mostWaiting: number): Way {
  const queues = new Map<StatementText, ChurningSet<Gathered>>();
  const onTheirWay = new Set<StatementText>();
  const limits = createTimeLimits(() => false);
  let isCancelled = false;

  function send(text: StatementText, values: readonly unknown[], deadline: number) {
    return new Promise<readonly Row[]>((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      const queue = queueOf(text);
      if (queue.size >= mostWaiting) return reject(unavailable('too many requests wait for a connection'));
      const [[id = '']] = values as [string[]];
      const waiting: Gathered = {
        id: id.toLowerCase(),
        until: deadline,
        giveUp() {
          queue.delete(waiting);
          waiting.reject(outOfTime());
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
      queue.add(waiting);
      if (!onTheirWay.has(text)) void sendQueue(text, queue);
    });
  }

  function queueOf(text: StatementText): ChurningSet<Gathered> {
    const known = queues.get(text);
    if (known) return known;
    const added = new ChurningSet<Gathered>();
    queues.set(text, added);
    return added;
  }

  async function sendQueue(text: StatementText, queue: ChurningSet<Gathered>): Promise<void> {
    onTheirWay.add(text);
    while (queue.size > 0) {
      const batch = [...queue].slice(0, LARGEST);
      for (const waiting of batch) queue.delete(waiting);
      await answer(text, batch);
    }
    onTheirWay.delete(text);
  }

  async function answer(text: StatementText, batch: readonly Gathered[]): Promise<void> {
    const ids = [...new Set(batch.map(({ id }) => id))];
    try {
      tellRows(batch, await way.send(text, [ids], Math.max(...batch.map(({ until }) => until))));
    } catch (fault) {
      if (batch.length === 1 || isOfAll(fault)) for (const { reject } of batch) reject(fault);
      else await Promise.all(batch.map((waiting) => answer(text, [waiting])));
    }
  }

  return {
    send,
    get waitingCount() {
      return countAll(queues.values());
    },
    isCrowded: () => way.isCrowded() || [...queues.values()].some(({ size }) => size >= mostWaiting / 2),
    cancel() {
      isCancelled = true;
      for (const queue of queues.values()) cancelAll(queue);
      way.cancel();
    },
  };
}

/** Whether none of the ids can be the cause; any other fault may be that of one, and the others are to be answered. */
function isOfAll(fault: unknown): boolean {
  return fault instanceof Problem || hasLostConnection(fault) || isLockTimeout(fault) || isStalePlan(fault);
}
