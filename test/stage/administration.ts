import pg from 'pg';
import { afterAll, beforeAll, inject } from 'vitest';

/** A connection to the PostgreSQL of the tests as its administrator, by default to the database for administration. */
export async function administer(database?: string) {
  const server = inject('postgres');
  const client = new pg.Client({ ...server, database: database ?? server.database, ssl: false });
  client.on('error', () => {});
  await client.connect();
  const sessionsOf = async (name: string, what: string) => {
    const text = `SELECT ${what} FROM pg_stat_activity WHERE datname = $1 AND application_name = 'user-management-service'`;
    return (await client.query(text, [name])).rows;
  };
  return {
    async query(statement: string): Promise<readonly Record<string, unknown>[]> {
      return (await client.query(statement)).rows;
    },
    /** Ends all sessions of the service in this database. Resolves with their number when they have ended. */
    async terminate(name: string): Promise<number> {
      return (await sessionsOf(name, 'pg_terminate_backend(pid, 5000)')).length;
    },
    /** Number of sessions of the service in this database. */
    async countSessions(name: string): Promise<number> {
      return (await sessionsOf(name, 'pid')).length;
    },
    end: () => client.end(),
  };
}

/** A connection as administrator to the database of the service, for all tests of a file. */
export function administratorOf(service: { readonly database: { readonly name: string } }) {
  let administrator: Awaited<ReturnType<typeof administer>>;
  beforeAll(async () => {
    administrator = await administer(service.database.name);
  });
  afterAll(() => administrator.end());

  return {
    query: (statement: string) => administrator.query(statement),
    /** Ends all sessions of the service. */
    terminate: () => administrator.terminate(service.database.name),
    /** Sets an option for every later session in the database. `isOnly` resets all other options. */
    async setForSessions(option: string, value: string, { isOnly = false } = {}): Promise<void> {
      const { name } = service.database;
      if (isOnly) await administrator.query(`ALTER DATABASE ${name} RESET ALL`);
      await administrator.query(`ALTER DATABASE ${name} SET ${option} = '${value}'`);
      await administrator.terminate(name);
    },
    /** Number of sessions of the service. */
    countSessions: () => administrator.countSessions(service.database.name),
  };
}
