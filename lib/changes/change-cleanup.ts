import { sql } from 'kysely';
import type { PreparedStatement, Statements } from '../postgres/index.ts';
import { type ChangeRow, changeColumns, idOf } from './change.ts';
import { isHead } from './numbering.ts';

/** Maximum number of changes that one statement deletes, so that no caller notices it. */
const MAX_DELETED = 1000;

type AgedRow = ChangeRow & { readonly age: 'old' | 'young' | 'future' };

/** Changes to delete: their first and last positions, and the `id` of the last one. */
type Span = { readonly from: string; readonly to: string; readonly id: string };

/**
 * Deletes changes that are older than the retention, in the order of their positions, up to the first younger one. A
 * change whose time lies in the future, because a clock was wrong, has no known age. It is deleted together with an old
 * change after it.
 */
export class ChangeCleanup {
  readonly #read: PreparedStatement<{ after: string }, AgedRow>;
  readonly #delete: PreparedStatement<Span, unknown>;

  constructor(statements: Statements, days: number) {
    this.#read = statements.ownSessionRead(
      'SELECT user_changes',
      ({ after }) => sql`
        select ${changeColumns}, case when time > now() then 'future'
          when time > now() - ${days}::float8 * interval '1 day' then 'young' else 'old' end as age
        from user_changes where position > ${after}::bigint order by position limit ${sql.lit(MAX_DELETED)}`,
    );
    // The same statement moves `expired`. A reader therefore gets either the change or 410.
    this.#delete = statements.ownSessionWrite(
      'DELETE user_changes',
      ({ from, to, id }) => sql`
        with deleted as (
          delete from user_changes where position between ${from}::bigint and ${to}::bigint
        )
        update user_changes_head set expired = ${to}::bigint, expired_id = ${id}::text where expired < ${to}::bigint and ${isHead}`,
    );
  }

  /** Deletes in steps, and yields between two. A span is deleted once an old change follows its changes of unknown age. */
  async *deleteExpired(): AsyncGenerator<void> {
    let undecided: Span[] = [];
    for (let after = '0'; ; ) {
      const rows = await this.#read.run({ after });
      const young = rows.findIndex(({ age }) => age === 'young');
      const behind = young === -1 ? rows : rows.slice(0, young);
      const old = behind.findLast(({ age }) => age === 'old');
      const [from, to] = [rows[0], old ?? rows.at(-1)];
      if (!from || !to) return;
      undecided.push({ from: from.position, to: to.position, id: idOf(to) });
      if (old) {
        for (const span of undecided) await this.#delete.run(span);
        undecided = [];
      }
      if (young !== -1 || rows.length < MAX_DELETED) return;
      after = to.position;
      yield;
    }
  }
}
