import type { ChurningSet } from '../../churning-set.ts';
import type { Gathered } from './gathered.ts';

/** Somebody's write, and its values, each a list of one. */
export type WaitingWrite = Gathered & {
  readonly values: readonly (readonly unknown[])[];
  readonly deadline: number;
  readonly giveUp: () => void;
  until: number;
  isSent: boolean;
};

/** In items: what one statement writes at most. */
const LARGEST = 128;

/** In items: what is tried together once more when a larger group has failed. */
const PART = 16;

/**
 * Takes the next from the queue; a second one of an id stays for a later group. In the order of the ids, so that no two
 * groups, of other instances either, wait for each other.
 */
export function takeGroup(waiting: ChurningSet<WaitingWrite>): readonly WaitingWrite[] {
  const group = new Map<string, WaitingWrite>();
  for (const one of waiting) {
    if (group.size === LARGEST) break;
    if (group.has(one.id)) continue;
    group.set(one.id, one);
    waiting.delete(one);
    one.until = one.deadline;
    one.isSent = true;
  }
  return [...group.values()].sort(byId);
}

/**
 * Those who still wait for an answer, in parts: a fault of one fails one part alone, so that few of its neighbours are sent
 * one by one.
 */
export function partsOf(group: readonly WaitingWrite[]): readonly (readonly WaitingWrite[])[] {
  const now = performance.now();
  const left = group.filter(({ deadline }) => deadline > now);
  const size = group.length > PART ? PART : 1;
  return Array.from({ length: Math.ceil(left.length / size) }, (_, index) =>
    left.slice(index * size, (index + 1) * size),
  );
}

/** The values of one statement for all of them. */
export function valuesOf(group: readonly WaitingWrite[]): readonly (readonly unknown[])[] {
  const [first] = group as readonly [WaitingWrite];
  if (group.length === 1) return first.values;
  return first.values.map((_, index) => group.map(({ values }) => values[index]?.[0]));
}

function byId({ id: one }: WaitingWrite, { id: other }: WaitingWrite): number {
  return one < other ? -1 : 1;
}
