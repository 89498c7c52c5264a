import { type RawBuilder, sql } from 'kysely';
import { engineProfile } from './engine-profile.ts';
import { reachedTimeLimit, waitedFor } from './faults.ts';
import { prepare, type Run, type Values } from './prepared-statement.ts';
import { Sender } from './sender.ts';
import type { ReceivedRow } from './wire/rows.ts';
import { LOCK_TIMEOUT_PARAMETER } from './wire/session-executor.ts';

/** A row of a list as PostgreSQL sent it, in binary. `lib/json` writes it without reading its values. */
export type ListRow = ReceivedRow;

/**
 * The statements of the service. Each method takes a statement of one kind, written with kysely, and returns a function
 * that sends it. `summary` is the operation and the table, as spans show it.
 */
export class Statements extends Sender {
  readonly #readAcceptsWrites = this.single<Values, { accepts_writes: boolean }>(
    'SELECT',
    () => sql`select current_setting('transaction_read_only') = 'off' as accepts_writes`,
  );

  /**
   * A read of one row by a unique value of an SQL type. One statement reads the values of many requests, and `keys` is a
   * list of them. A row has its value, as it was sent, as `key` or, without that column, as `id`.
   */
  batchedRead<Row>(
    summary: string,
    type: string,
    write: (keys: RawBuilder<unknown>) => RawBuilder<Row>,
  ): (key: string) => Promise<Row | undefined> {
    type Given = { readonly keys: readonly string[] };
    const read = prepare<Given, Row>(this, { summary, kind: 'batched-read' }, ({ keys }) =>
      write(sql`${keys}::${sql.raw(type)}[]`),
    );
    return (key) => read({ keys: [key] }).then(takeFirst);
  }

  /**
   * A write of one row. One statement carries out the writes of many requests, and returns the `id` of each row. `given`
   * is a common table expression with a row for each request. Its columns have the names and SQL types of `types`, and
   * are not lists. If the statement returns no row with the id, the function resolves with undefined.
   */
  batchedWrite<Given extends { readonly id: string }, Row>(
    summary: string,
    types: { readonly [Name in keyof Given]: string },
    write: (given: RawBuilder<unknown>) => RawBuilder<Row>,
  ): (values: Given) => Promise<Row | undefined> {
    const columns = Object.entries<string>(types);
    const carryOut = prepare<Values, Row>(this, { summary, kind: 'batched-write' }, (lists) =>
      write(givenRows(columns, lists)),
    );
    return (values) => carryOut(toLists(values)).then(takeFirst);
  }

  /**
   * A read of many rows, which stay in the form in which they came. A read that takes PostgreSQL long (`isLong`) has a
   * connection of its own.
   */
  list<Given extends Values>(
    summary: string,
    write: (given: Given) => RawBuilder<unknown>,
  ): (values: Given, isLong: boolean) => Promise<readonly ListRow[]> {
    const readShort = prepare<Given, ListRow>(this, { summary, kind: 'list', isBinary: true }, write);
    const readLong = prepare<Given, ListRow>(this, { summary, kind: 'single', isBinary: true }, write);
    return (values, isLong) => (isLong ? readLong : readShort)(values);
  }

  /** Any other statement. It has a connection of its own. */
  single<Given extends Values, Row>(
    summary: string,
    write: (given: Given) => RawBuilder<Row>,
  ): Run<Given, Row> {
    return prepare(this, { summary, kind: 'single' }, write);
  }

  /**
   * A source of one row for a `single` statement: while the statement runs, no wait for a lock reaches the request's time
   * limit. Undefined if the engine has no such limit. It works behind poolers, because it ends with the statement.
   */
  get lockWaitLimit(): RawBuilder<unknown> | undefined {
    if (!engineProfile(this.settings).limitsLockWaits) return undefined;
    return sql`(select set_config('lock_timeout', ${LOCK_TIMEOUT_PARAMETER}::text, true)) as limited`;
  }

  /**
   * Whether a statement reached its time limit while it waited for a row of this table that another transaction had
   * written. If the engine does not report what it waited for, any time limit may be such a wait.
   */
  waitedFor(fault: unknown, table: string): boolean {
    return engineProfile(this.settings).limitsLockWaits ? waitedFor(fault, table) : reachedTimeLimit(fault);
  }

  /** Whether PostgreSQL accepts writes, so that the cleanup sends no statements that would fail. */
  async acceptsWrites(): Promise<boolean> {
    const [row] = await this.#readAcceptsWrites({});
    return row?.accepts_writes === true;
  }
}

function takeFirst<Row>([row]: readonly Row[]): Row | undefined {
  return row;
}

/** Each value as a list of one. A batch has lists with an entry for each request. */
function toLists(values: Values): Values {
  const lists: Record<string, readonly [unknown]> = {};
  for (const name in values) lists[name] = [values[name]];
  return lists;
}

function givenRows(columns: readonly (readonly [string, string])[], lists: Values): RawBuilder<unknown> {
  const names = sql.join(columns.map(([name]) => sql.ref(name)));
  const values = sql.join(columns.map(([name, type]) => sql`${lists[name]}::${sql.raw(type)}[]`));
  return sql`given as materialized (select * from unnest(${values}) as given (${names}))`;
}
