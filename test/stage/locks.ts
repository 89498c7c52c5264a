import { connectToDatabase, type PostgresServer } from './rows.ts';
import { until } from './until.ts';

/**
 * Runs statements in a transaction of its own that stays open and keeps its locks until `release()`, which rolls back,
 * or until `commit()`.
 */
export async function hold(database: PostgresServer, ...statements: readonly string[]) {
  const client = await connectToDatabase(database);
  for (const statement of ['BEGIN', ...statements]) await client.query(statement);
  return {
    release: () => client.end(),
    async commit() {
      await client.query('COMMIT');
      await client.end();
    },
  };
}

/** Settings with which no request ends before the lock of its test is released. */
export const PATIENT = { SVC_POSTGRES_POOL_TIMEOUT: '30', SVC_POSTGRES_STATEMENT_TIMEOUT: '30' };

/** Locks the whole table of users, so that every statement on it waits. */
export const holdUsers = (database: PostgresServer) =>
  hold(database, 'LOCK TABLE users IN ACCESS EXCLUSIVE MODE');

/** Locks one user, so that only its writes wait. */
export const holdUser = (database: PostgresServer, id: string) =>
  hold(database, `SELECT FROM users WHERE id = '${id}' FOR UPDATE`);

/** Writes a user and does not commit, so that a write with the same email waits. */
export const holdEmail = (database: PostgresServer, email: string) =>
  hold(database, `INSERT INTO users (id, email) VALUES (gen_random_uuid(), '${email}')`);

/**
 * Waits until this many statements of the service have been in progress in PostgreSQL for this many milliseconds, for
 * `seconds` at most. A statement that waits for a lock moves to a connection of its own after 20 milliseconds.
 */
export async function untilUnderWay(
  count: number,
  database: PostgresServer,
  seconds = 10,
  milliseconds = 0,
): Promise<void> {
  const client = await connectToDatabase(database);
  const active = async () => {
    const { rows } = await client.query(
      `SELECT count(*)::int FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'user-management-service' AND state = 'active'
         AND clock_timestamp() - query_start >= $1 * interval '1 millisecond'`,
      [milliseconds],
    );
    return rows[0].count === count;
  };
  await until(`${count} statements under way`, active, { seconds }).finally(() => client.end());
}
