/**
 * All migrations, in their order; kept for ever in `kysely_migration`. Apart from what they do, since /ready needs no
 * more than the name of the last.
 */
const names = [
  '0001-users',
  '0002-inactive-users',
  '0003-idempotency-keys',
  '0004-user-changes',
  '0005-feed-head',
] as const;

/** The name of a migration. */
export type MigrationName = (typeof names)[number];

/** The migration that this version of the service needs to be there: the last one. */
export const latestMigration: MigrationName = names[names.length - 1] as MigrationName;
