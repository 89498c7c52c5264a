import { type RawBuilder, sql } from 'kysely';
import { compile } from './compile.ts';
import { RetryingSender } from './retrying-sender.ts';
import { reachedTimeLimit, waitedFor } from './sessions/faults.ts';
import type { ReceivedRow } from './sessions/rows.ts';
import { nameStatement, type StatementText } from './sessions/statement-text.ts';

/** The SQL types of columns and parameters. A value that may be null is a text: see `encodeParameter`. */
export type SqlType = 'uuid' | 'text' | 'boolean' | 'timestamptz' | 'smallint';

/** The values of a statement, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** A statement that is sent again and again with other values. */
export type PreparedStatement<Given extends Values, Row> = { run(given: Given): Promise<readonly Row[]> };

/** A statement about one row. One statement carries out those of many requests. */
type BatchedStatement<Given extends Values, Row> = { run(given: Given): Promise<Row | undefined> };

/** `key` is the name of the value by which a batch hands rows back. */
type Particulars = Omit<StatementText, 'sql' | 'name' | 'keyAt'> & { readonly key?: 'id' | 'key' };

/** Each method prepares a statement of one kind, written with kysely. `summary` is its operation and its table. */
export class Statements extends RetryingSender {
  /** A read of one row by a unique value, one of the list `keys`. The row has it as `key` or, without that, as `id`. */
  batchedRead<Row>(
    summary: string,
    type: SqlType,
    write: (keys: RawBuilder<unknown>) => RawBuilder<Row>,
  ): BatchedStatement<{ readonly key: string }, Row> {
    return this.#prepareBatched({ summary, kind: 'batched-read', isRead: true, key: 'key' }, ({ key }) =>
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
    return this.#prepareBatched({ summary, kind: 'batched-write', isRead: false, key: 'id' }, (lists) =>
      write(givenRows(columns, lists)),
    );
  }

  /** A read of many rows, which stay as they came, for `lib/json`. A read that takes PostgreSQL long is `own-session`. */
  list<Given extends Values>(
    summary: string,
    kind: 'list' | 'own-session',
    write: (given: Given) => RawBuilder<unknown>,
  ): PreparedStatement<Given, ReceivedRow> {
    return this.prepare({ summary, kind, isRead: true, isBinary: true }, write);
  }

  /** Any other read. It has a session to itself. */
  ownSessionRead<Given extends Values, Row>(
    summary: string,
    write: (given: Given) => RawBuilder<Row>,
    kind: 'own-session' | 'readiness' = 'own-session',
  ): PreparedStatement<Given, Row> {
    return this.prepare({ summary, kind, isRead: true }, write);
  }

  /** Any other write. It has a session to itself. With `limitsLockWaits`, `waitedFor` knows what it waited for. */
  ownSessionWrite<Given extends Values, Row>(
    summary: string,
    write: (given: Given) => RawBuilder<Row>,
    options: { readonly limitsLockWaits?: boolean } = {},
  ): PreparedStatement<Given, Row> {
    const limitsLockWaits = this.engine.isPostgres && options.limitsLockWaits === true;
    return this.prepare({ summary, kind: 'own-session', isRead: false, limitsLockWaits }, write);
  }

  /** Whether it reached its time limit while it waited for a row of this table, or, without PostgreSQL's report, for any. */
  waitedFor(fault: unknown, table: string): boolean {
    return this.engine.isPostgres ? waitedFor(fault, table) : reachedTimeLimit(fault);
  }

  /** It is compiled when it is first sent. To compile it each time would cost a fifth of a request. */
  prepare<Given extends Values, Row>(
    particulars: Particulars,
    write: (given: Given) => RawBuilder<unknown>,
  ): PreparedStatement<Given, Row> {
    let compiled: ReturnType<typeof compileOnce> | undefined;
    return {
      run: (given) => {
        compiled ??= compileOnce(particulars, write);
        const values = compiled.parameters.map((parameter) =>
          typeof parameter === 'symbol' ? given[String(parameter.description)] : parameter,
        );
        return this.run(compiled.text, values) as Promise<readonly Row[]>;
      },
    };
  }

  /** Each value is sent as a list of one. */
  #prepareBatched<Given extends Values, Row>(
    particulars: Particulars,
    write: (lists: Values) => RawBuilder<Row>,
  ): BatchedStatement<Given, Row> {
    const statement = this.prepare<Values, Row>(particulars, write);
    return {
      run: (given) => {
        const lists: Record<string, readonly [unknown]> = {};
        for (const name in given) lists[name] = [given[name]];
        return statement.run(lists).then(([row]) => row);
      },
    };
  }
}

/** While the statement is written, a symbol with the name of a value takes the place of the value. */
function compileOnce<Given>(
  { key, ...particulars }: Particulars,
  write: (given: Given) => RawBuilder<unknown>,
) {
  const names = new Proxy({}, { get: (_, name) => Symbol(String(name)) });
  const compiled = compile(write(names as Given));
  const { parameters } = compiled;
  const keyAt = parameters.findIndex((one) => typeof one === 'symbol' && one.description === key);
  if (key && keyAt < 0) throw new Error(`a batched statement does not use its ${key}`);
  // On one line, as logs and traces show it. No text in it has more than one space in a row.
  const line = compiled.sql.replace(/\s+/g, ' ').trim();
  const text: StatementText = { ...particulars, keyAt, ...nameStatement(line) };
  return { text, parameters };
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
