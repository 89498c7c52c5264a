import { createQueryId, PostgresQueryCompiler, type RawBuilder, type RawNode } from 'kysely';
import type { KindText, Sender } from './sender.ts';

/** The values of a statement, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** Sends the statement with these values, and resolves with its rows. */
export type Run<Given, Row> = (values: Given) => Promise<readonly Row[]>;

/** Number of statements of this process. Each has a name of its own on all connections. */
let count = 0;

/** A statement that is compiled when it is first sent. */
export function prepare<Given, Row>(
  sender: Pick<Sender, 'run'>,
  particulars: Pick<KindText, 'summary' | 'kind' | 'isBinary'>,
  write: (given: Given) => RawBuilder<unknown>,
): Run<Given, Row> {
  let text: KindText | undefined;
  let parameters: readonly unknown[] = [];

  return (given) => {
    if (!text) {
      const compiled = compile(write(placeholders<Given>()));
      count += 1;
      // On one line, as logs and traces show it. No text in it has more than one space in a row.
      text = { ...particulars, sql: compiled.sql.replace(/\s+/g, ' ').trim(), name: count.toString(36) };
      parameters = compiled.parameters;
    }
    const values = parameters.map((parameter) =>
      parameter instanceof Placeholder ? (given as Values)[parameter.name] : parameter,
    );
    return sender.run(text, values) as Promise<readonly Row[]>;
  };
}

/** One statement: its text and its parameters. A parameter is a constant, or a placeholder for a value. */
export type Statement = { readonly sql: string; readonly parameters: readonly unknown[] };

/** The place of a value in a statement while the statement is written. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** The placeholders of all values, by their names. */
function placeholders<Values>(): Values {
  return new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as Values;
}

/** The text of a statement. Only kysely's compiler is used: all of kysely would enlarge a function bundle by a seventh. */
export function compile(written: RawBuilder<unknown>): Statement {
  return new PostgresQueryCompiler().compileQuery(written.toOperationNode() as RawNode, createQueryId());
}
