/** The span of a write: in milliseconds of one clock; `answered` is Infinity for a write in doubt. */
export type WriteSpan = { readonly sent: number; readonly answered: number };

/** A change of a real history, at its place in the order of the positions. */
export type PlacedChange = { readonly requestId: string; readonly subject: string; readonly version: number };

/** A read up to the head: it returned all changes before the index `upTo` of the history. */
export type FeedRead = WriteSpan & { readonly upTo: number };

export type FeedHistory = {
  readonly changes: readonly PlacedChange[];
  readonly writes: ReadonlyMap<string, WriteSpan>;
  readonly reads: readonly FeedRead[];
};

/** A part of a history, renumbered so that it fits the bounds of feed.pml. Each change has a writer of its own. */
export type Window = {
  /** Begin (1) and end (2) of writers, then of readers (from 6 on), by time. */
  readonly events: readonly (readonly [what: 1 | 2, who: number])[];
  /** By writer. */
  readonly users: readonly number[];
  /** By user: 0 if its first change of the window is its creation, otherwise 1. */
  readonly bases: readonly number[];
  /** By position: the writer, and the version, counted from the base. */
  readonly changes: readonly { readonly writer: number; readonly version: number }[];
  /** By reader: the last position that it read. */
  readonly reads: readonly number[];
};

/** Changes of a window, and reads of a window. The model has as many writers, and as many readers. */
export const BOUNDS = { CHANGES: 6, READS: 2 } as const;

/** All windows of a history: every stretch of positions, and every stretch of the changes of one user. */
export function windowsIn({ changes, writes, reads }: FeedHistory): Window[] {
  const all = changes.map((change, index) => ({ ...change, index }));
  const ordered = reads.toSorted((one, other) => one.upTo - other.upTo);
  const ofUsers = [...Map.groupBy(all, ({ subject }) => subject).values()].filter(({ length }) => length > 1);
  return [all, ...ofUsers].flatMap((list) =>
    Array.from({ length: Math.ceil(list.length / BOUNDS.CHANGES) }, (_, n) => {
      // The last stretch begins early enough to be as long as the others.
      const start = Math.max(0, Math.min(n * BOUNDS.CHANGES, list.length - BOUNDS.CHANGES));
      return windowOf(list.slice(start, start + BOUNDS.CHANGES), writes, ordered);
    }),
  );
}

type IndexedChange = PlacedChange & { readonly index: number };

function windowOf(
  changes: readonly IndexedChange[],
  writes: ReadonlyMap<string, WriteSpan>,
  reads: readonly FeedRead[],
): Window {
  const subjects = [...new Set(changes.map(({ subject }) => subject))];
  const firsts = subjects.map(
    (subject) => changes.find((change) => change.subject === subject)?.version ?? 1,
  );
  const spans = changes.map(({ requestId }) => writes.get(requestId) ?? { sent: Number.NaN, answered: 0 });
  if (spans.some(({ sent }) => Number.isNaN(sent))) throw new Error('a change has no request');
  const overlapping = readsWithin(changes, spans, reads);
  const times = [...spans, ...overlapping].flatMap((span, who) => [
    { what: 1 as const, who, time: span.sent },
    { what: 2 as const, who, time: span.answered },
  ]);
  // What happens at the same moment is taken for concurrent.
  const events = times
    .filter(({ time }) => time !== Number.POSITIVE_INFINITY)
    .sort((one, other) => one.time - other.time || one.what - other.what)
    .map(
      ({ what, who }) => [what, who < changes.length ? who : who - changes.length + BOUNDS.CHANGES] as const,
    );
  return {
    events,
    users: changes.map(({ subject }) => subjects.indexOf(subject)),
    bases: firsts.map((version) => (version === 1 ? 0 : 1)),
    changes: changes.map(({ subject, version }, writer) => {
      const first = firsts[subjects.indexOf(subject)] ?? 1;
      return { writer, version: version - first + (first === 1 ? 1 : 2) };
    }),
    reads: overlapping.map(({ upTo }) => changes.filter(({ index }) => index < upTo).length),
  };
}

/** Reads during the writes of a window: the first that ended behind its first change, and the last before its end. */
function readsWithin(
  changes: readonly IndexedChange[],
  spans: readonly WriteSpan[],
  reads: readonly FeedRead[],
): readonly FeedRead[] {
  const [first, last] = [changes[0]?.index ?? 0, changes.at(-1)?.index ?? 0];
  const begun = Math.min(...spans.map(({ sent }) => sent));
  const near = reads.slice(firstAtLeast(reads, first), firstAtLeast(reads, last + 2));
  const within = near.filter(({ answered }) => answered > begun);
  return [...new Set([within[0], within.at(-1)])].filter((read) => read !== undefined);
}

/** The first read, by binary search, that returned so many changes or more. */
function firstAtLeast(reads: readonly FeedRead[], upTo: number): number {
  let [low, high] = [0, reads.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((reads[middle]?.upTo ?? 0) < upTo) low = middle + 1;
    else high = middle;
  }
  return low;
}
