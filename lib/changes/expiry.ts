import { sql } from 'kysely';
import type { Statements } from '../postgres/index.ts';
import { type ChangeRow, changeColumns, idOf } from './change.ts';
import { isHead } from './head.ts';

/** Maximum number of changes that one statement deletes, so that no caller notices it. */
const STEP = 1000;

type AgedRow = ChangeRow & { readonly age: 'old' | 'young' | 'future' };
type Span = { readonly from: ChangeRow; readonly to: ChangeRow };

/**
 * Deletes changes that are older than the retention, in the order of their positions, up to the first younger one. A
 * change whose time lies in the future, because a clock was wrong, has no known age. It is deleted together with an old
 * change after it. Each step resolves with whether there may be more to delete.
 */
export function expiringChanges(statements: Statements): (days: number) => () => Promise<boolean> {
  const read = statements.single<{ after: string; days: number }, AgedRow>(
    'SELECT user_changes',
    ({ after, days }) => sql`
      select ${changeColumns}, case when time > now() then 'future'
        when time > now() - ${days}::float8 * interval '1 day' then 'young' else 'old' end as age
      from user_changes where position > ${after}::bigint order by position limit ${sql.lit(STEP)}`,
  );
  // The same statement moves `expired`. A reader therefore gets either the change or 410.
  const remove = statements.single<{ from: string; to: string; id: string }, unknown>(
    'DELETE user_changes',
    ({ from, to, id }) => sql`
      with deleted as (
        delete from user_changes where position between ${from}::bigint and ${to}::bigint
      )
      update user_changes_head set expired = ${to}::bigint, expired_id = ${id}::text where expired < ${to}::bigint and ${isHead}`,
  );

  return (days) => {
    let after = '0';
    let undecided: Span[] = [];

    return async () => {
      const rows = await read({ after, days });
      const young = rows.findIndex(({ age }) => age === 'young');
      const behind = young === -1 ? rows : rows.slice(0, young);
      const old = behind.findLast(({ age }) => age === 'old');
      const [from, to] = [rows[0], old ?? rows.at(-1)];
      if (!from || !to) return false;
      undecided.push({ from, to });
      if (old) {
        for (const { from, to } of undecided)
          await remove({ from: from.position, to: to.position, id: idOf(to) });
        undecided = [];
      }
      after = to.position;
      return young === -1 && rows.length === STEP;
    };
  };
}
