import type { Kysely } from 'kysely';
import type { Engine } from '../engines.ts';
import { users } from './0001-users.ts';
import { inactiveUsers } from './0002-inactive-users.ts';
import { idempotencyKeys } from './0003-idempotency-keys.ts';
import { userChanges } from './0004-user-changes.ts';
import { feedHead } from './0005-feed-head.ts';
import type { MigrationName } from './names.ts';

/**
 * A few statements, outside of a transaction. They may be sent again after any failure, so they leave existing objects
 * unchanged. The previous version of the service must be able to run beside them.
 */
export type Migration = (db: Kysely<unknown>, engine: Engine) => Promise<void>;

/** The function of each migration, in their order. */
export const migrations: Readonly<Record<MigrationName, Migration>> = {
  '0001-users': users,
  '0002-inactive-users': inactiveUsers,
  '0003-idempotency-keys': idempotencyKeys,
  '0004-user-changes': userChanges,
  '0005-feed-head': feedHead,
};
