import { createQueryId, PostgresQueryCompiler, type RawBuilder, type RawNode } from 'kysely';
import type { ReceivedRow } from './connections/row-reader.ts';
import type { Statement } from './queries.ts';
import type { Kind, NamedStatement, Statements } from './statements.ts';

/** Sends the statement with these values, and resolves with the rows it returned. */
export type Prepared<Values, Row> = (values: Values) => Promise<readonly Row[]>;

/** The place of a value in the statement. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A statement that is written with kysely, compiled at its first use, and sent many times. Compiling it each time would
 * cost the server a fifth of a request. `given` represents the values while the statement is written. `summary` is the
 * operation and its table, for spans. `kind` decides which statements share its connection.
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
 * The same for rows that stay in PostgreSQL's binary form, from which a page is written. No setting of a session
 * changes the binary form of a value.
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
      text = { ...particulars, sql, name: `s${prepared}` };
      parameters = written;
    }
    const values = parameters.map((parameter) =>
      parameter instanceof Placeholder ? given[parameter.name] : parameter,
    );
    return statements.run({ text, values }) as Promise<readonly Row[]>;
  };
}

/** Number of the latest prepared statement. Each has a name of its own on all connections of this process. */
let prepared = 0;

/**
 * Compiles to one line, for logs and traces. No text within a statement has two spaces in a row. Only kysely's compiler
 * is used, because all of kysely would make a function larger by a seventh.
 */
function compile(written: RawBuilder<unknown>): Statement {
  const node = written.toOperationNode() as RawNode;
  const { sql, parameters } = new PostgresQueryCompiler().compileQuery(node, createQueryId());
  return { sql: sql.replace(/\s+/g, ' ').trim(), parameters };
}

function placeholders<Values extends Record<string, unknown>>(): Values {
  return new Proxy({} as Values, { get: (_, name) => new Placeholder(String(name)) });
}
