/** The migration that this version of the service needs to be there; apart from the others, which need kysely. */
export const latestMigration = '0001-users';
