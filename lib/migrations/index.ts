import type { EventLog } from '../observability/event-log.ts';
import type { Settings } from '../settings/settings.ts';
import { users } from './0001-users.ts';
import { inactiveUsers } from './0002-inactive-users.ts';
import { idempotencyKeys } from './0003-idempotency-keys.ts';
import { userChanges } from './0004-user-changes.ts';
import { feedHead } from './0005-feed-head.ts';
import { externalIds } from './0006-external-ids.ts';
import { emailRule } from './0007-email-rule.ts';
import { setBackSequence } from './0008-set-back-sequence.ts';
import { erasure } from './0009-erasure.ts';
import { type Migration, migrate } from './runner.ts';

/** The migrations, in their order. `kysely_migration` keeps their names for ever, and CHANGELOG.md has each of them. */
export const migrations = {
  '0001-users': users,
  '0002-inactive-users': inactiveUsers,
  '0003-idempotency-keys': idempotencyKeys,
  '0004-user-changes': userChanges,
  '0005-feed-head': feedHead,
  '0006-external-ids': externalIds,
  '0007-email-rule': emailRule,
  '0008-set-back-sequence': setBackSequence,
  '0009-erasure': erasure,
} as const satisfies Readonly<Record<string, Migration>>;

/** The last migration, which this version of the service requires. */
export const latestMigration = Object.keys(migrations).at(-1) as keyof typeof migrations;

/** Runs the migrations that have not run yet. @throws the fault that ended the run; the next run continues there */
export function runMigrations(
  postgres: Settings['postgres'],
  signal?: AbortSignal,
  log?: EventLog,
): Promise<void> {
  return migrate(postgres, migrations, signal, log);
}
