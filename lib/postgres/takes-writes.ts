import { sql } from 'kysely';
import { prepare } from './prepared.ts';
import type { Statements } from './statements.ts';

/** Asks whether PostgreSQL accepts writes, so that the cleanup sends no statements that would fail. */
export function askingForWrites(statements: Pick<Statements, 'run'>): () => Promise<boolean> {
  const ask = prepare<Record<string, never>, { takes_writes: boolean }>(
    statements,
    'SELECT',
    () => sql`select current_setting('transaction_read_only') = 'off' as takes_writes`,
  );

  return async () => {
    const [row] = await ask({});
    return row?.takes_writes === true;
  };
}
