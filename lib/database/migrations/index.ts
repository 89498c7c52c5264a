import type { Migration } from 'kysely/migration';
import { users } from './0001-users.ts';

/** All migrations by name; the names order them and are kept for ever in `kysely_migration`. */
export const migrations: Readonly<Record<string, Migration>> = { '0001-users': users };

/** The migration that this version of the service needs to be there. */
export const latestMigration = Object.keys(migrations).sort().at(-1) as string;
