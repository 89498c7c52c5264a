import { sql } from 'kysely';
import { prepare } from './prepared.ts';
import type { Statements } from './statements.ts';

/** Asks whether PostgreSQL takes writes: a statement that would write breaks its connection where it does not. */
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
