import type { Author } from '../../changes/recording.ts';
import type { Outcome } from '../../idempotency/carry-out-once.ts';
import type { Fingerprint } from '../../idempotency/fingerprint.ts';
import { createdAndGone } from '../../idempotency/refusals.ts';
import { createdFields } from '../fields.ts';
import { type ReplayedUser, readingReplayedUsers } from '../replayed-users.ts';
import { isTaken } from '../taken-values.ts';
import { newUserId } from '../user-id.ts';
import { userIn } from '../user-row.ts';
import type { WriteContext } from '../write-context.ts';
import { findingConflicts } from './batch-conflicts.ts';
import type { BatchItem } from './batch-item.ts';
import { type InsertItems, type Items, insertingItems, type Selection } from './insert-items.ts';
import type { UserBatch } from './user-batch.ts';

type Given = Parameters<InsertItems>[0];

/** Stores the items of a batch, and resolves with the result of each. With a key, a batch is carried out once. */
export function creatingBatch(writing: WriteContext) {
  const { statements, carryOutOnce } = writing;
  const inserts = {
    all: insertsOf('all'),
    free_emails: insertsOf('free_emails'),
    free_values: insertsOf('free_values'),
  };
  const readReplayedUsers = readingReplayedUsers(statements);
  const { refuseRepeated, refuseTaken, findTaken } = findingConflicts(statements);

  function insertsOf(selection: Selection) {
    return {
      plain: insertingItems(writing, selection, { isKeyed: false }),
      keyed: insertingItems(writing, selection, { isKeyed: true }),
    };
  }

  async function createBatch({ items, mode }: UserBatch, author: Author): Promise<readonly ReplayedUser[]> {
    const given = { ...itemsIn(items), ...author };
    if (mode === 'atomic') await refuseRepeated(given);
    return (await untilDecided(mode, inserts[selectionOf(mode, given)].plain, given)) ?? [];
  }

  async function createBatchOnce(
    { items, mode }: UserBatch,
    author: Author,
    fingerprint: Fingerprint,
  ): Promise<Outcome<readonly ReplayedUser[]>> {
    const given = { ...itemsIn(items), ...author, ...fingerprint };
    // Refused whatever the state of the key.
    if (mode === 'atomic') await refuseRepeated(given);
    const outcome = await carryOutOnce(fingerprint, {
      write: () => untilDecided(mode, inserts[selectionOf(mode, given)].keyed, given),
      read: () => readReplayedUsers(fingerprint.key),
    });
    if (mode === 'atomic' && outcome.created.includes('gone')) throw createdAndGone();
    return outcome;
  }

  /** Sends a batch again if another writer has overtaken it. Refuses an atomic batch that cannot be stored. */
  async function untilDecided(
    mode: UserBatch['mode'],
    insert: InsertItems,
    given: Given,
  ): Promise<readonly ReplayedUser[] | undefined> {
    // The time limit of the request's statements ends the loop.
    for (;;) {
      try {
        const rows = await insert(given);
        if (rows.length === 0 && given.key) return undefined;
        const stored = new Map(rows.flatMap((row) => (row.id === null ? [] : [[row.id, userIn(row)]])));
        const results = given.id.map((id) => stored.get(id) ?? 'refused');
        const isNamed = results.some(
          (result, index) => result === 'refused' && given.external_id[index] !== null,
        );
        return isNamed ? await nameTaken(given, results) : results;
      } catch (fault) {
        if (!isTaken(fault)) throw fault;
        if (mode === 'atomic') await refuseTaken(given);
      }
    }
  }

  /** Finds what was taken of refused items. Without an external id, it was the email. */
  async function nameTaken(given: Given, results: readonly ReplayedUser[]): Promise<readonly ReplayedUser[]> {
    const taken = await findTaken(given);
    return results.map((result, index) => (result === 'refused' ? (taken[index] ?? result) : result));
  }

  return { createBatch, createBatchOnce };
}

function selectionOf(mode: UserBatch['mode'], { external_id }: Items): Selection {
  if (mode === 'atomic') return 'all';
  return external_id.some((value) => value !== null) ? 'free_values' : 'free_emails';
}

/** Ids are generated in the order of the items, and therefore order the users of a batch. */
function itemsIn(items: readonly BatchItem[]): Items {
  const lists = createdFields.map(({ name }) => [name, items.map(({ user }) => user?.[name] ?? null)]);
  return { id: items.map(() => newUserId()), ...Object.fromEntries(lists) };
}
