import { createHash } from 'node:crypto';
import type { FeedHistory, FeedRead, PlacedChange, WriteSpan } from '../../model/windows.ts';
import type { Random } from '../load/random.ts';
import { type Change, FIRST_CHANGES, positionOf, readPage, type Service } from './changes.ts';
import { type Entry, isAcknowledged, isInDoubt, isKeyInUse, type Ledger } from './ledger.ts';

/** Changes of a full page: the limit in FIRST_CHANGES. */
const CHANGES_PER_PAGE = 1000;

/** What writers were answered, as far as the feed must have it: a million entries of a ledger would be too many. */
export function createFeedBooks() {
  const groups = new Map<string, string>();
  const writes = new Map<string, WriteSpan>();
  const owed = new Map<string, { least: number; most: number }>();
  let owedAtLeast = 0;

  return {
    /** Enters a request that makes so many changes; those with one key count together. */
    enter(entry: Entry, changes: number, group = entry.requestId): void {
      groups.set(entry.requestId, group);
      writes.set(entry.requestId, spanOf(entry));
      const { least, most } = owed.get(group) ?? { least: 0, most: 0 };
      if (isAcknowledged(entry)) {
        owed.set(group, { least: changes, most: changes });
        owedAtLeast += changes - least;
      } else if (isInDoubt(entry) || isKeyInUse(entry))
        owed.set(group, { least, most: Math.max(most, changes) });
    },
    writes: writes as ReadonlyMap<string, WriteSpan>,
    /** How many changes are owed at least. */
    owed: () => owedAtLeast,
    /** Holds a reader's count of changes by request against what was answered. */
    faults(counts: ReadonlyMap<string, number>): string[] {
      const seen = new Map<string, number>();
      for (const [requestId, count] of counts) {
        const group = groups.get(requestId) ?? `${requestId}, an unknown request`;
        seen.set(group, (seen.get(group) ?? 0) + count);
      }
      const faults: string[] = [];
      for (const [group, { least, most }] of owed) {
        const count = seen.get(group) ?? 0;
        if (count < least || count > most)
          faults.push(`${group} has ${count} changes, not ${least} to ${most}`);
        seen.delete(group);
      }
      for (const [group, count] of seen) faults.push(`${count} changes of ${group}, which was refused`);
      return faults;
    },
  };
}

/** The feed as a ledger and its changes show it. */
export function feedHistoryOf({ entries }: Ledger, changes: readonly Change[]): FeedHistory {
  return {
    changes: changes.map(({ subject, data }) => ({
      requestId: data.request_id,
      subject,
      version: data.version,
    })),
    writes: new Map(entries.map((entry) => [entry.requestId, spanOf(entry)])),
    reads: [],
  };
}

const spanOf = (entry: Entry): WriteSpan => ({
  sent: entry.sent,
  answered: isInDoubt(entry) ? Number.POSITIVE_INFINITY : entry.answered,
});

/** Follows the feed from its beginning, and keeps nothing but the last link when it restarts. */
export function startReader(service: Service, random: Random, restarts: number) {
  let isStopped = false;
  const counts = new Map<string, number>();
  const versions = new Map<string, number>();
  const faults: string[] = [];
  const digest = createHash('sha256');
  const changes: PlacedChange[] = [];
  const reads: FeedRead[] = [];
  let position = 0n;
  let read = 0;

  function take(change: Change): void {
    const { id, subject, type, data } = change;
    const given = positionOf(change);
    if (given <= position) faults.push(`${id} comes after ${position}`);
    position = given;
    const before = versions.get(subject) ?? 0;
    const isNext = data.version === before + 1 && (type === 'user.created') === (before === 0);
    if (!isNext) faults.push(`${type} ${data.version} of ${subject} comes after version ${before}`);
    versions.set(subject, data.version);
    counts.set(data.request_id, (counts.get(data.request_id) ?? 0) + 1);
    digest.update(`${id} ${subject} ${data.version}\n`);
    changes.push({ requestId: data.request_id, subject, version: data.version });
    read += 1;
  }

  async function follow(): Promise<void> {
    for (let path = FIRST_CHANGES; ; ) {
      const restart = random.chance(restarts) ? AbortSignal.timeout(random.below(30)) : undefined;
      const isLast = isStopped;
      // A read that waits may return less than a read up to the head.
      const waits = random.chance(0.5);
      const page = await readPage(service, waits ? `${path}&wait=1` : path, restart);
      if (!page) continue;
      if (!page.next) throw new Error(`${path} has no next link`);
      page.items.forEach(take);
      if (!waits && page.items.length < CHANGES_PER_PAGE)
        reads.push({ sent: page.sent, answered: performance.now(), upTo: read });
      path = page.next.replace('&wait=1', '');
      if (page.items.length === 0 && isLast) return;
    }
  }

  const following = follow();
  return {
    /** Reads to the end, once the writers have ended; resolves with what was read. */
    async finish() {
      isStopped = true;
      await following;
      return { counts, faults, read, digest: digest.digest('hex'), changes, reads };
    },
  };
}
