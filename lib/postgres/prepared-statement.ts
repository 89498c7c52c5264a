import { createQueryId, PostgresQueryCompiler, type RawBuilder, type RawNode } from 'kysely';
import type { KindText, Sender } from './sender.ts';

/** The values of a statement, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** Sends the statement with these values, and resolves with its rows. */
export type Run<Given, Row> = (values: Given) => Promise<readonly Row[]>;

/** A statement: its text and its parameters. A parameter is a constant, or a placeholder for a value. */
export type Statement = { readonly sql: string; readonly parameters: readonly unknown[] };

type Particulars = Pick<KindText, 'summary' | 'kind' | 'isBinary'>;

/** Number of statements of this process. Each has a name of its own on all sessions. */
let count = 0;

/** Prepares a statement. It is compiled when it is first sent. To compile it each time would cost a fifth of a request. */
export function prepare<Given, Row>(
  sender: Pick<Sender, 'run'>,
  particulars: Particulars,
  write: (given: Given) => RawBuilder<unknown>,
): Run<Given, Row> {
  let compiled: ReturnType<typeof compileAs> | undefined;
  return (given) => {
    compiled ??= compileAs(particulars, write(placeholders<Given>()));
    const values = compiled.parameters.map((parameter) =>
      parameter instanceof Placeholder ? (given as Values)[parameter.name] : parameter,
    );
    return sender.run(compiled.text, values) as Promise<readonly Row[]>;
  };
}

/** The text of a statement, and its parameters: constants, and placeholders for values. */
function compileAs(particulars: Particulars, written: RawBuilder<unknown>) {
  const { sql, parameters } = compile(written);
  count += 1;
  // On one line, as logs and traces show it. No text in it has more than one space in a row.
  const text = { ...particulars, sql: sql.replace(/\s+/g, ' ').trim(), name: count.toString(36) };
  return { text, parameters };
}

/** The text of a statement. Only kysely's compiler is used: all of kysely would enlarge a function bundle by a seventh. */
export function compile(written: RawBuilder<unknown>): Statement {
  return new PostgresQueryCompiler().compileQuery(written.toOperationNode() as RawNode, createQueryId());
}

/** The place of a value in a statement while the statement is written. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** The placeholders of all values, by their names. */
function placeholders<Given>(): Given {
  return new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as Given;
}
