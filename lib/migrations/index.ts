import type { Migration } from '../postgres/migrate/migration.ts';
import { users } from './0001-users.ts';
import { inactiveUsers } from './0002-inactive-users.ts';
import { idempotencyKeys } from './0003-idempotency-keys.ts';
import { userChanges } from './0004-user-changes.ts';
import { feedHead } from './0005-feed-head.ts';
import type { MigrationName } from './names.ts';

/** What each migration does, in their order. */
export const migrations: Readonly<Record<MigrationName, Migration>> = {
  '0001-users': users,
  '0002-inactive-users': inactiveUsers,
  '0003-idempotency-keys': idempotencyKeys,
  '0004-user-changes': userChanges,
  '0005-feed-head': feedHead,
};
