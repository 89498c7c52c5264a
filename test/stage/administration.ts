import { inject } from 'vitest';
import { forAllTests } from './for-all-tests.ts';
import { connectToDatabase } from './rows.ts';

/** A connection to the PostgreSQL of the tests as its administrator, by default to the database for administration. */
export async function administer(database = inject('postgres').database) {
  const client = await connectToDatabase({ ...inject('postgres'), database });
  const query = async (statement: string): Promise<readonly Record<string, unknown>[]> =>
    (await client.query(statement)).rows;
  const sessionsOf = async (name: string, what: string) => {
    const text = `SELECT ${what} FROM pg_stat_activity WHERE datname = $1 AND application_name = 'user-management-service'`;
    return (await client.query(text, [name])).rows;
  };
  /** Ends all sessions of the service in a database, by default this one. Resolves with their number when they have ended. */
  const terminate = async (name = database): Promise<number> =>
    (await sessionsOf(name, 'pg_terminate_backend(pid, 5000)')).length;

  return {
    query,
    terminate,
    /** Sets an option for every later session in the database. */
    async setForSessions(option: string, value: string): Promise<void> {
      await query(`ALTER DATABASE ${database} SET ${option} = '${value}'`);
      await terminate();
    },
    /** Number of sessions of the service in a database, by default this one. */
    countSessions: async (name = database): Promise<number> => (await sessionsOf(name, 'pid')).length,
    stop: () => client.end(),
  };
}

/** A connection as administrator to the database of the service, for all tests of a file. */
export const administratorOf = (service: { readonly database: { readonly name: string } }) =>
  forAllTests(() => administer(service.database.name));
