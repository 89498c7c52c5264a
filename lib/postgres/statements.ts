import { type RawBuilder, sql } from 'kysely';
import {
  type BatchedStatement,
  type PreparedStatement,
  prepare,
  prepareBatched,
  type Values,
} from './prepared-statement.ts';
import { Sender } from './sender.ts';
import { reachedTimeLimit, waitedFor } from './sessions/faults.ts';
import type { ReceivedRow } from './sessions/rows.ts';

/** The SQL types of columns and parameters. A value that may be null is a text: see `encodeParameter`. */
export type SqlType = 'uuid' | 'text' | 'boolean' | 'timestamptz' | 'smallint';

/** Each method prepares a statement of one kind, written with kysely. `summary` is its operation and its table. */
export class Statements extends Sender {
  /** A read of one row by a unique value, one of the list `keys`. The row has it as `key` or, without that, as `id`. */
  batchedRead<Row>(
    summary: string,
    type: SqlType,
    write: (keys: RawBuilder<unknown>) => RawBuilder<Row>,
  ): BatchedStatement<{ readonly key: string }, Row> {
    return prepareBatched(this, { summary, kind: 'batched-read', isRead: true, key: 'key' }, ({ key }) =>
      write(sql`${key}::${sql.raw(type)}[]`),
    );
  }

  /**
   * A write of one row, which returns its `id`. One statement carries out those of many requests: `given` has a row for
   * each, and columns of the names and SQL types of `types`.
   */
  batchedWrite<Given extends { readonly id: string }, Row>(
    summary: string,
    types: { readonly [Name in keyof Given]: SqlType },
    write: (given: RawBuilder<unknown>) => RawBuilder<Row>,
  ): BatchedStatement<Given, Row> {
    const columns = Object.entries<SqlType>(types);
    return prepareBatched(this, { summary, kind: 'batched-write', isRead: false, key: 'id' }, (lists) =>
      write(givenRows(columns, lists)),
    );
  }

  /** A read of many rows, which stay as they came, for `lib/json`. A read that takes PostgreSQL long is `single`. */
  list<Given extends Values>(
    summary: string,
    kind: 'list' | 'single',
    write: (given: Given) => RawBuilder<unknown>,
  ): PreparedStatement<Given, ReceivedRow> {
    return prepare(this, { summary, kind, isRead: true, isBinary: true }, write);
  }

  /** Any other read. It has a session to itself. */
  singleRead<Given extends Values, Row>(
    summary: string,
    write: (given: Given) => RawBuilder<Row>,
    kind: 'single' | 'readiness' = 'single',
  ): PreparedStatement<Given, Row> {
    return prepare(this, { summary, kind, isRead: true }, write);
  }

  /** Any other write. It has a session to itself. With `limitsLockWaits`, `waitedFor` knows what it waited for. */
  single<Given extends Values, Row>(
    summary: string,
    write: (given: Given) => RawBuilder<Row>,
    options: { readonly limitsLockWaits?: boolean } = {},
  ): PreparedStatement<Given, Row> {
    const limitsLockWaits = this.engine.isPostgres && options.limitsLockWaits === true;
    return prepare(this, { summary, kind: 'single', isRead: false, limitsLockWaits }, write);
  }

  /** Whether it reached its time limit while it waited for a row of this table, or, without PostgreSQL's report, for any. */
  waitedFor(fault: unknown, table: string): boolean {
    return this.engine.isPostgres ? waitedFor(fault, table) : reachedTimeLimit(fault);
  }
}

function givenRows(columns: readonly (readonly [string, SqlType])[], lists: Values): RawBuilder<unknown> {
  const names = sql.join(columns.map(([name]) => sql.ref(name)));
  const values = sql.join(columns.map(([name, type]) => sql`${lists[name]}::${sql.raw(type)}[]`));
  return sql`given as materialized (select * from unnest(${values}) as given (${names}))`;
}

/** Repeats an attempt until it resolves with a result. The time limit of the request's statements ends the repetition. */
export function repeatUntilDone<Result>(attempt: () => Promise<Result | undefined>): Promise<Result> {
  return attempt().then((result) => (result === undefined ? repeatUntilDone(attempt) : result));
}
