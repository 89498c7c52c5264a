import type { RawBuilder } from 'kysely';
import type { Engine } from '../postgres/engines.ts';
import { users } from './0001-users.ts';
import { inactiveUsers } from './0002-inactive-users.ts';
import { idempotencyKeys } from './0003-idempotency-keys.ts';
import { userChanges } from './0004-user-changes.ts';
import { feedHead } from './0005-feed-head.ts';
import type { MigrationName } from './names.ts';

/** Sends one statement, and resolves with its rows. */
export type SendSql = <Row>(statement: RawBuilder<Row>) => Promise<readonly Row[]>;

/**
 * One statement or a few, outside of a transaction. Each leaves alone what is there already, because it may be sent again
 * after any failure, and suits the version of the service that still runs beside it.
 */
export type Migration = (send: SendSql, engine: Engine) => Promise<void>;

/** What each migration does, in their order. */
export const migrations: Readonly<Record<MigrationName, Migration>> = {
  '0001-users': users,
  '0002-inactive-users': inactiveUsers,
  '0003-idempotency-keys': idempotencyKeys,
  '0004-user-changes': userChanges,
  '0005-feed-head': feedHead,
};
