import type { Migration } from 'kysely/migration';
import { users } from './0001-users.ts';
import { latestMigration } from './latest.ts';

/** All migrations by name; the names order them and are kept for ever in `kysely_migration`. */
export const migrations: Readonly<Record<string, Migration>> = { [latestMigration]: users };
