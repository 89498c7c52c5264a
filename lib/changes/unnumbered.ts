import { sql } from 'kysely';
import type { Statements } from '../postgres/index.ts';
import { headRow, unnumbered } from './head.ts';

/** Number of the changes without a position, and age of the oldest one in seconds. */
export type Unnumbered = { readonly count: number; readonly age: number };

/** Reads these figures from PostgreSQL, which reads all changes without a position. */
export function askingForUnnumbered(statements: Statements): () => Promise<Unnumbered> {
  const ask = statements.single<Record<string, never>, { count: string; age: number }>(
    'SELECT user_changes_unnumbered',
    () => sql`
      select count(*), greatest(coalesce(extract(epoch from clock_timestamp() - min(time)), 0), 0)::float8 as age
      from ${headRow} as head cross join lateral ${unnumbered(sql`all`)} as unnumbered`,
  );

  return async () => {
    const [{ count = 0, age = 0 } = {}] = await ask({});
    return { count: Number(count), age };
  };
}
