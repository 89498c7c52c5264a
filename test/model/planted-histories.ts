import type { FeedHistory } from './windows.ts';

/**
 * A history from a text: the writes in the order of their positions, each as user, version, and the moments of request and
 * response (`a2 4-5`, without the last one if it is in doubt). Then the reads, each as the number of changes up to which it
 * returned all, and its moments (`2 at 5-6`).
 */
function historyOf(text: string): FeedHistory {
  const writes = [...text.matchAll(/([a-z])(\d) (\d+)-(\d*)/g)];
  const reads = [...text.matchAll(/(\d) at (\d+)-(\d+)/g)];
  return {
    changes: writes.map(([, subject = '', version], n) => ({
      requestId: `${n}`,
      subject,
      version: Number(version),
    })),
    writes: new Map(writes.map(([, , , sent, answered], n) => [`${n}`, spanOf(sent, answered)])),
    reads: reads.map(([, upTo, sent, answered]) => ({ ...spanOf(sent, answered), upTo: Number(upTo) })),
  };
}

const spanOf = (sent: string | undefined, answered: string | undefined) => ({
  sent: Number(sent),
  answered: Number(answered || Number.POSITIVE_INFINITY),
});

export const ACCEPTED: Readonly<Record<string, FeedHistory>> = {
  'one write after the other': historyOf('a1 0-1, b1 2-3, a2 4-5'),
  'a write that committed late': historyOf('b1 2-3, a1 0-9, b2 4-5'),
  'a write in doubt': historyOf('a1 0-1, b1 5-6, a2 2-'),
  'a read after two responses': historyOf('a1 0-1, b1 2-3, a2 4-8; 2 at 5-6'),
  'a read that began before a write, and has its change': historyOf('a1 1-3, b1 2-4; 1 at 0-5'),
};

export const REFUSED: Readonly<Record<string, FeedHistory>> = {
  'a write before one that was answered when it began': historyOf('b1 2-3, a1 0-1'),
  'versions of a user out of order': historyOf('a2 0-5, a1 1-4'),
  'a version that is missing': historyOf('a1 0-1, a3 2-3'),
  'a read without a change that was answered before': historyOf('a1 0-1, b1 2-3; 1 at 4-5'),
  'a read with a change before it was sent': historyOf('a1 0-1, b1 6-7; 2 at 2-3'),
  'a read with less than an earlier one': historyOf('a1 0-9, b1 0-9; 2 at 1-2, 1 at 3-4'),
};
