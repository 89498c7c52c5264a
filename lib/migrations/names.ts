/**
 * The names of all migrations, in their order. `kysely_migration` keeps them for ever. They are separate from the
 * functions, because /ready needs only the last name.
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

/** The last migration, which this version of the service requires. */
export const latestMigration: MigrationName = names[names.length - 1] as MigrationName;
