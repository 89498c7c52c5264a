import type { Progress } from '../report/progress.ts';
import { fill } from './fill.ts';
import type { Stage } from './stage.ts';
import { idOf } from './users.ts';

const UNFINISHED = 'filling';

/** Each page of the table has one or two users with such a number. */
const EACH = 50;

/** The database with this many users, filled unless an earlier run has left it: a table that has been in use. */
export async function databaseOfSize(stage: Stage, progress: Progress): Promise<string> {
  const { users } = stage;
  const name = `users_${users}`;
  const found = await stage.query('postgres', `SELECT FROM pg_database WHERE datname = '${name}'`);
  if (found.length === 0) {
    await stage.query('postgres', `DROP DATABASE IF EXISTS ${UNFINISHED}`);
    await stage.createDatabase(UNFINISHED);
    await fill(stage.query, UNFINISHED, users, progress);
    await updateEach(stage, UNFINISHED, 1, progress);
    await stage.query('postgres', `ALTER DATABASE ${UNFINISHED} RENAME TO ${name}`);
  }
  return name;
}

/**
 * Brings a table into the state in which each size is measured: what fits into shared buffers is there, and where users are
 * written, each page has room and has been written since the last checkpoint. For new rows leave no room, so that the first
 * update of a page moves its row to another and writes to all indexes; and a start is a checkpoint, after which the first
 * write of a page logs all of it. Both are over soon in the smallest table, and in the largest within none of the runs.
 */
export async function warmUp(
  stage: Stage,
  database: string,
  { isWritten }: { readonly isWritten: boolean },
  progress: Progress,
): Promise<void> {
  progress(`warming up ${database}`);
  await stage.query(database, 'CREATE EXTENSION IF NOT EXISTS pg_prewarm');
  await stage.query(
    database,
    `SELECT pg_prewarm(oid) FROM pg_class WHERE relname LIKE 'users%' AND relkind IN ('r', 'i')`,
  );
  // Other users than those that had to move, in whose place they find room.
  if (isWritten) await updateEach(stage, database, 2, progress);
}

async function updateEach(stage: Stage, database: string, rest: number, progress: Progress): Promise<void> {
  progress(`updating one user in ${EACH}`);
  await stage.query(
    database,
    `UPDATE users SET full_name = full_name
     WHERE CASE WHEN id <= '${idOf(stage.users)}' THEN right(id::text, 12)::bigint % ${EACH} = ${rest} END`,
  );
  await stage.vacuum(database);
}
