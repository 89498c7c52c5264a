import type { Author } from '../../changes/recording.ts';
import type { Outcome } from '../../idempotency/carry-out-once.ts';
import type { Fingerprint } from '../../idempotency/fingerprint.ts';
import { createdAndGone } from '../../idempotency/refusals.ts';
import { violatesUnique } from '../../postgres/index.ts';
import { createdFields } from '../fields.ts';
import { type ReplayedUser, readingReplayedUsers } from '../replayed-users.ts';
import { newUserId } from '../user-id.ts';
import { userIn } from '../user-row.ts';
import type { WriteContext } from '../write-context.ts';
import type { BatchItem } from './batch-item.ts';
import { type InsertItems, type Items, insertingItems } from './insert-items.ts';
import { refusingBatchEmails } from './refuse-batch-emails.ts';
import type { UserBatch } from './user-batch.ts';

type Given = Parameters<InsertItems>[0];

/** Stores the items of a batch, and resolves with the result of each. With a key, a batch is carried out once. */
export function creatingBatch(writing: WriteContext) {
  const { statements, carryOutOnce } = writing;
  const inserts = { atomic: insertsOf('atomic'), partial: insertsOf('partial') };
  const readReplayedUsers = readingReplayedUsers(statements);
  const { refuseRepeatedEmails, refuseEmails } = refusingBatchEmails(statements);

  function insertsOf(mode: UserBatch['mode']) {
    return {
      plain: insertingItems(writing, mode, { isKeyed: false }),
      keyed: insertingItems(writing, mode, { isKeyed: true }),
    };
  }

  async function createBatch({ items, mode }: UserBatch, author: Author): Promise<readonly ReplayedUser[]> {
    const given = { ...itemsIn(items), ...author };
    if (mode === 'atomic') await refuseRepeatedEmails(given.email);
    return (await untilDecided(mode, inserts[mode].plain, given)) ?? [];
  }

  async function createBatchOnce(
    { items, mode }: UserBatch,
    author: Author,
    fingerprint: Fingerprint,
  ): Promise<Outcome<readonly ReplayedUser[]>> {
    const given = { ...itemsIn(items), ...author, ...fingerprint };
    // Refused whatever the state of the key.
    if (mode === 'atomic') await refuseRepeatedEmails(given.email);
    const outcome = await carryOutOnce(fingerprint, {
      write: () => untilDecided(mode, inserts[mode].keyed, given),
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
        return given.id.map((id) => stored.get(id) ?? 'refused');
      } catch (fault) {
        if (!violatesUnique(fault, 'users_email_key')) throw fault;
        if (mode === 'atomic') await refuseEmails(given.email);
      }
    }
  }

  return { createBatch, createBatchOnce };
}

/** Ids are generated in the order of the items, and therefore order the users of a batch. */
function itemsIn(items: readonly BatchItem[]): Items {
  const lists = createdFields.map(({ name }) => [name, items.map(({ user }) => user?.[name] ?? null)]);
  return { id: items.map(() => newUserId()), ...Object.fromEntries(lists) };
}
