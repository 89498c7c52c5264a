import pg from 'pg';
import type { createDatabase } from './postgres.ts';

/** Runs statements of a test in a database, and resolves with the rows of the last one. */
export async function inDatabase(
  database: Awaited<ReturnType<typeof createDatabase>>,
  ...statements: readonly string[]
): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ ...database, ssl: false });
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
