import type { FeedHistory, FeedRead, PlacedChange, WriteSpan } from './windows.ts';

/** A history of writes given in the order of their positions: user, version, and the moments of request and response. */
function historyOf(
  writes: readonly (readonly [user: string, version: number, sent: number, answered: number])[],
  reads: readonly FeedRead[] = [],
): FeedHistory {
  const changes: PlacedChange[] = writes.map(([subject, version], n) => ({
    requestId: `${n}`,
    subject,
    version,
  }));
  const spans = writes.map(([, , sent, answered], n): [string, WriteSpan] => [`${n}`, { sent, answered }]);
  return { changes, writes: new Map(spans), reads };
}

const NEVER = Number.POSITIVE_INFINITY;

/** Histories that can be. */
export const ACCEPTED: Readonly<Record<string, FeedHistory>> = {
  'one write after the other': historyOf([
    ['a', 1, 0, 1],
    ['b', 1, 2, 3],
    ['a', 2, 4, 5],
  ]),
  'a write that committed late': historyOf([
    ['b', 1, 2, 3],
    ['a', 1, 0, 9],
    ['b', 2, 4, 5],
  ]),
  'a write in doubt': historyOf([
    ['a', 1, 0, 1],
    ['b', 1, 5, 6],
    ['a', 2, 2, NEVER],
  ]),
  'a read after two responses': historyOf(
    [
      ['a', 1, 0, 1],
      ['b', 1, 2, 3],
      ['a', 2, 4, 8],
    ],
    [{ sent: 5, answered: 6, upTo: 2 }],
  ),
  'reads while a write is under way': historyOf(
    [
      ['a', 4, 0, 1],
      ['a', 5, 2, 9],
    ],
    [
      { sent: 3, answered: 4, upTo: 1 },
      { sent: 5, answered: 6, upTo: 2 },
    ],
  ),
  'a read that began before a write, and has its change': historyOf(
    [
      ['a', 1, 1, 3],
      ['b', 1, 2, 4],
    ],
    [{ sent: 0, answered: 5, upTo: 1 }],
  ),
};

/** Histories with a planted violation. */
export const REFUSED: Readonly<Record<string, FeedHistory>> = {
  'a write before one that was answered when it began': historyOf([
    ['b', 1, 2, 3],
    ['a', 1, 0, 1],
  ]),
  'versions of a user out of order': historyOf([
    ['a', 2, 0, 5],
    ['a', 1, 1, 4],
  ]),
  'a version that is missing': historyOf([
    ['a', 1, 0, 1],
    ['a', 3, 2, 3],
  ]),
  'a version twice': historyOf([
    ['a', 1, 0, 3],
    ['a', 1, 1, 2],
  ]),
  'a read without a change that was answered before': historyOf(
    [
      ['a', 1, 0, 1],
      ['b', 1, 2, 3],
    ],
    [{ sent: 4, answered: 5, upTo: 1 }],
  ),
  'a read with a change before it was sent': historyOf(
    [
      ['a', 1, 0, 1],
      ['b', 1, 6, 7],
    ],
    [{ sent: 2, answered: 3, upTo: 2 }],
  ),
  'a read with less than an earlier one': historyOf(
    [
      ['a', 1, 0, 9],
      ['b', 1, 0, 9],
    ],
    [
      { sent: 1, answered: 2, upTo: 2 },
      { sent: 3, answered: 4, upTo: 1 },
    ],
  ),
};
