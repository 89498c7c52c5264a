import { sql } from 'kysely';
import { isReadOnly } from '../database/faults.ts';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { unavailable } from '../problem.ts';
import type { ChangeRow } from './change.ts';
import { numberingChanges } from './numbering.ts';
import { cursorExpired, noSuchUserOrChange } from './refusals.ts';
import { LOOKED_AT, type Reading, type ReadRow, selectingChanges } from './select-changes.ts';

/** A page of changes, and the position up to which all that was asked for has been read. */
export type Page = { readonly changes: readonly ChangeRow[]; readonly position: number };

/** A page, and how the feed stands: `head` is its last position, changes up to `expired` are not kept any more. */
export type Look = Page & { readonly head: number; readonly expired: number };

/** The feed of changes. */
export type Feed = {
  /**
   * Looks at a page, whatever the position it is after. What was answered before the look began is in it: changes without
   * a position are given theirs first, unless PostgreSQL takes no writes.
   *
   * @throws {Problem} not_found_error for a user of whom nothing is known
   */
  look(reading: Reading): Promise<Look>;
  /**
   * Reads a page.
   *
   * @throws {Problem} cursor_expired_error, and what look throws
   */
  read(reading: Reading): Promise<Look>;
};

type Rows = readonly [ReadRow, ...ReadRow[]];

/** The feed in PostgreSQL. */
export function changeFeed(statements: Pick<Statements, 'run'>): Feed {
  const select = selectingChanges(statements);
  const number = numberingChanges(statements);
  const resume = prepare<Record<string, never>, unknown>(
    statements,
    'UPDATE user_changes_head',
    () => sql`update user_changes_head
      set position = position + 1, expired = position + 1, is_interrupted = false where is_interrupted`,
  );

  /** The rows of a page, once nothing is left without a position that could be on it. */
  async function rowsOf(reading: Reading): Promise<Rows> {
    let isNumbered = false;
    // The time of the request's statements ends it.
    for (;;) {
      const [row, ...more] = await select(reading);
      if (!row) throw unavailable('the feed of changes has not been migrated');
      const rows: Rows = [row, ...more];
      const isComplete = isNumbered || !row.has_unnumbered || isFull(rows, reading);
      if (!row.takes_writes || (isComplete && !row.is_interrupted)) return rows;
      try {
        if (row.is_interrupted) await resume({});
        else isNumbered = await number();
      } catch (fault) {
        // It takes no writes since then.
        if (isReadOnly(fault)) return rows;
        throw fault;
      }
    }
  }

  async function look(reading: Reading): Promise<Look> {
    const rows = await rowsOf(reading);
    const [{ head, expired, is_known }] = rows;
    const changes = rows.filter((row) => row.position !== null);
    const last = changes.at(-1);
    const position = last && changes.length === reading.limit ? Number(last.position) : endOf(rows, reading);
    const look = { changes, position, head: Number(head), expired: Number(expired) };
    // A cursor that has expired is told first, whatever user it is of.
    if (!is_known && isKept(reading.after ?? look.expired, look)) throw noSuchUserOrChange();
    return look;
  }

  return {
    look,
    async read(reading) {
      const page = await look(reading);
      if (!isKept(reading.after ?? page.expired, page)) throw cursorExpired();
      return page;
    },
  };
}

/** Whether all that came after a position is kept; one beyond the head is of a feed that was lost. */
export function isKept(position: number, { head, expired }: Look): boolean {
  return position >= expired && position <= head;
}

/** Whether there is more than the page holds, so that what has no position yet cannot be on it. */
function isFull(rows: Rows, reading: Reading): boolean {
  if (reading.limit === 0) return false;
  const hasLimit = rows.length === reading.limit && rows[0].position !== null;
  return hasLimit || endOf(rows, reading) < Number(rows[0].head);
}

/** How far the feed has been looked at. */
function endOf([{ head, expired }]: Rows, { after, limit, userId }: Reading): number {
  if (limit === 0 || userId !== undefined) return Number(head);
  return Math.min((after ?? Number(expired)) + LOOKED_AT, Number(head));
}
