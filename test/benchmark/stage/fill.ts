import type { Progress } from '../report/progress.ts';
import { emailInSql, FIRST_CREATED, idInSql } from './users.ts';

const USERS_A_STATEMENT = 250_000;

/** Adds the users from number 1 to number `to`, and leaves the table as a calm day would: vacuumed. */
export async function fill(
  query: (database: string, statement: string) => Promise<unknown>,
  database: string,
  to: number,
  progress: Progress,
): Promise<void> {
  for (let first = 1; first <= to; first += USERS_A_STATEMENT) {
    const last = Math.min(first + USERS_A_STATEMENT - 1, to);
    // One in fifty is inactive, and one is created each second.
    await query(
      database,
      `INSERT INTO users (id, email, full_name, is_active, created_at, updated_at)
       SELECT ${idInSql('n')}, ${emailInSql('n')}, 'User ' || n, n % 50 <> 0, created, created
       FROM (SELECT n, timestamptz '${FIRST_CREATED}' + n * interval '1 second' AS created
         FROM generate_series(${first}, ${last}) AS n)`,
    );
    progress(`filling: ${last.toLocaleString('en')} of ${to.toLocaleString('en')} users`);
  }
  progress('vacuuming the users');
  await query(database, 'VACUUM (ANALYZE) users');
  await query(database, 'CHECKPOINT');
}
