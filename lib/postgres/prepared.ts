import { createQueryId, PostgresQueryCompiler, type RawBuilder, type RawNode } from 'kysely';
import type { Kind, NamedStatement, Statements } from './statements.ts';
import type { ReceivedRow } from './wire/row-reader.ts';

/** Sends the statement with these values, and resolves with the rows it returned. */
export type Prepared<Values, Row> = (values: Values) => Promise<readonly Row[]>;

/** Where a value goes, while the statement is written. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A statement that is written with kysely, compiled at its first use, and sent as often as wanted: to compile it each
 * time would cost this process a fifth of a request. `given` stands for the values while it is written; `summary`, the
 * operation and its table, is what spans call it; `kind` is what it does to others on its connection.
 */
export function prepare<Values extends Record<string, unknown>, Row>(
  statements: Pick<Statements, 'run'>,
  summary: string,
  write: (given: Values) => RawBuilder<Row>,
  kind: Kind = 'long',
): Prepared<Values, Row> {
  return prepareText(statements, write, { summary, kind });
}

/**
 * As `prepare`, of rows that are not read but left as they came, in binary: a page is written from these. That no setting
 * of a session has a say in how values are written holds of binary without more ado.
 */
export function prepareBinary<Values extends Record<string, unknown>>(
  statements: Pick<Statements, 'run'>,
  summary: string,
  write: (given: Values) => RawBuilder<unknown>,
  kind: Kind,
): Prepared<Values, ReceivedRow> {
  return prepareText(statements, write, { summary, kind, isBinary: true });
}

function prepareText<Values extends Record<string, unknown>, Row>(
  statements: Pick<Statements, 'run'>,
  write: (given: Values) => RawBuilder<unknown>,
  particulars: Pick<NamedStatement['text'], 'summary' | 'kind' | 'isBinary'>,
): Prepared<Values, Row> {
  let text: NamedStatement['text'] | undefined;
  let parameters: Statement['parameters'] = [];

  return (given) => {
    if (!text) {
      const { sql, parameters: written } = compile(write(placeholders()));
      prepared += 1;
      // On one line, as logs and traces show it: no text within it has more than one space in a row.
      text = { ...particulars, sql: sql.replace(/\s+/g, ' ').trim(), name: prepared.toString(36) };
      parameters = written;
    }
    const values = parameters.map((parameter) =>
      parameter instanceof Placeholder ? given[parameter.name] : parameter,
    );
    return statements.run({ text, values }) as Promise<readonly Row[]>;
  };
}

/** Each has a name of its own, on all connections of this process. */
let prepared = 0;

/** One statement: its text and the values of its parameters. */
export type Statement = { readonly sql: string; readonly parameters: readonly unknown[] };

/** The text of a statement. By kysely's compiler only: with all of kysely a function bundle would be larger by a seventh. */
export function compile(written: RawBuilder<unknown>): Statement {
  return new PostgresQueryCompiler().compileQuery(written.toOperationNode() as RawNode, createQueryId());
}

function placeholders<Values extends Record<string, unknown>>(): Values {
  return new Proxy({} as Values, { get: (_, name) => new Placeholder(String(name)) });
}
