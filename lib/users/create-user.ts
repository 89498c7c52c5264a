import { sql } from 'kysely';
import { AUTHOR_TYPES, type Author, recorded, recordedByEach } from '../changes/recording.ts';
import type { Outcome } from '../idempotency/carry-out-once.ts';
import { claimed } from '../idempotency/claim.ts';
import type { Fingerprint } from '../idempotency/fingerprint.ts';
import { createdAndGone } from '../idempotency/refusals.ts';
import { INSERTED_TYPES, insertedNames, insertedValues, insertUsers } from './insert-users.ts';
import { readingReplayedUsers } from './replayed-users.ts';
import { refusingTakenValues } from './taken-values.ts';
import type { User, UserCreate } from './user.ts';
import { newUserId } from './user-id.ts';
import { type UserRow, userIn } from './user-row.ts';
import type { WriteContext } from './write-context.ts';
import { type WrittenRow, writeReturning } from './write-returning.ts';

type Given = UserCreate & Author & { readonly id: string };

/** Stores one user. With a key, a create is carried out once, however often it is sent. */
export function creatingUser({ statements, carryOutOnce }: WriteContext) {
  const insert = statements.batchedWrite<Given, WrittenRow>(
    'INSERT users',
    { ...INSERTED_TYPES, ...AUTHOR_TYPES },
    (given) =>
      // The order of the addresses prevents two statements from waiting for each other. It folds by the collation of the
      // database; where that of the column differs, a deadlock is possible, and is retried. If two items have one address,
      // the first one wins. `on conflict` names no index, because CockroachDB accepts no expression there, and
      // generated ids do not collide.
      writeReturning(
        insertUsers('given', sql`given order by lower(upper(given.email)) on conflict do nothing`),
        { before: [given], record: recordedByEach('created') },
      ),
  );
  const insertOnce = statements.single<Given & Fingerprint, WrittenRow>('INSERT users', (given) =>
    writeReturning(
      insertUsers('item', sql`claimed, (values (${insertedValues(given)})) as item (${insertedNames})`),
      {
        before: [claimed(given, sql`array[${given.id}::uuid]`, statements)],
        record: recorded('created', given),
        isKeyed: true,
      },
    ),
  );
  const readReplayedUsers = readingReplayedUsers(statements);
  const { refuseTakenValues, writeUnlessTaken } = refusingTakenValues(statements);

  async function createUser(user: UserCreate, author: Author): Promise<User> {
    const given = { ...user, ...author, id: newUserId() };
    // The time limit of the request's statements ends the loop.
    for (;;) {
      const row = await insert(given);
      if (row) return userIn(row as UserRow);
      await refuseTakenValues(given);
    }
  }

  async function createUserOnce(
    user: UserCreate,
    author: Author,
    fingerprint: Fingerprint,
  ): Promise<Outcome<User>> {
    const given = { ...user, ...author, ...fingerprint, id: newUserId() };
    const { created, isReplay } = await carryOutOnce(fingerprint, {
      async write() {
        const [row] = await writeUnlessTaken(given, () => insertOnce(given));
        return row && [userIn(row as UserRow)];
      },
      read: () => readReplayedUsers(fingerprint.key),
    });
    const [known] = created;
    if (known === undefined || typeof known === 'string') throw createdAndGone();
    return { created: known, isReplay };
  }

  return { createUser, createUserOnce };
}
