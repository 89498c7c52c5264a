import { sql } from 'kysely';
import type { ServicePrincipal } from '../auth/principal.ts';
import { AUTHOR_TYPES, type Author, recorded } from '../changes/recording.ts';
import type { CarryOutOnce, Outcome } from '../idempotency/carry-out-once.ts';
import { type Fingerprint, fingerprint } from '../idempotency/fingerprint.ts';
import { claimed } from '../idempotency/key-table.ts';
import { createdAndGone } from '../idempotency/refusals.ts';
import type { EventLog } from '../observability/event-log.ts';
import { maskedEmail } from '../observability/redaction.ts';
import type { Statements } from '../postgres/index.ts';
import { type CreatedItem, isUser, keyedValues } from './keyed-creates.ts';
import { refusingTakenValues } from './taken-values.ts';
import type { User, UserCreate } from './user.ts';
import { newUserId } from './user-id.ts';
import {
  INSERTED_TYPES,
  insertedNames,
  insertedValues,
  insertUsers,
  type UserRow,
  userIn,
  writeReturning,
} from './user-row.ts';

type Given = UserCreate & Author & { readonly id: string };

/** Stores one user. With a key, a create is carried out once, however often it is sent. */
export function creatingUser(statements: Statements, carryOutOnce: CarryOutOnce<readonly CreatedItem[]>) {
  const insert = statements.batchedWrite<Given, UserRow>(
    'INSERT users',
    { ...INSERTED_TYPES, ...AUTHOR_TYPES },
    (given) =>
      // The order of the addresses prevents two statements from waiting for each other. It folds by the collation of the
      // database; where that of the column differs, a deadlock is possible, and is retried. If two items have one address,
      // the first one wins. `on conflict` names no index, because CockroachDB accepts no expression there, and
      // generated ids do not collide.
      writeReturning(
        insertUsers('given', sql`given order by lower(upper(given.email)) on conflict do nothing`),
        { before: [given], record: recorded('created') },
      ),
  );
  // With the statement of a batch, a create with a key took 40 % longer in PostgreSQL.
  const insertOnce = statements.single<Given & Fingerprint, UserRow>('INSERT users', (given) =>
    writeReturning(
      insertUsers('item', sql`claimed, (values (${insertedValues(given)})) as item (${insertedNames})`),
      {
        before: [claimed(given, sql`array[${given.id}::uuid]`, statements)],
        record: recorded('created', given),
        isKeyed: true,
      },
    ),
  );
  const { refuseTakenValues, writeUnlessTaken } = refusingTakenValues(statements);

  async function store(given: Given): Promise<User> {
    // The time limit of the request's statements ends the loop.
    for (;;) {
      const row = await insert(given);
      if (row) return userIn(row);
      await refuseTakenValues(given);
    }
  }

  return async (user: UserCreate, author: Author, key?: string): Promise<Outcome<User>> => {
    const given = { ...user, ...author, id: newUserId() };
    if (key === undefined) return { created: await store(given), isReplay: false };
    const request = fingerprint({ operation: 'createUser', subject: author.actor, key }, keyedValues(user));
    const { created, isReplay } = await carryOutOnce(request, async () => {
      const [row] = await writeUnlessTaken(given, () => insertOnce({ ...given, ...request }));
      return row && [userIn(row)];
    });
    const [item] = created;
    if (!isUser(item)) throw createdAndGone();
    return { created: item, isReplay };
  };
}

/** Logs that a user was created. A replay has created no user. */
export function logCreated(log: EventLog, { id, email }: User, { subject }: ServicePrincipal): void {
  log.info('user_created', { user_id: id, email: maskedEmail(email), subject });
}
