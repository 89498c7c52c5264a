import {
  type CompiledQuery,
  createQueryId,
  PostgresQueryCompiler,
  type RawBuilder,
  type RawNode,
} from 'kysely';
import type { KindText, Sender } from './sender.ts';
import { nameStatement } from './sessions/index.ts';

/** The values of a statement, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** `key` is the name of the value by which a batch hands rows back. */
type Particulars = Omit<KindText, 'sql' | 'name' | 'keyAt'> & { readonly key?: 'id' | 'key' };

/** A statement that is sent again and again with other values. */
export class PreparedStatement<Given extends Values, Row> {
  readonly #sender: Pick<Sender, 'run'>;
  readonly #particulars: Particulars;
  readonly #write: (given: Given) => RawBuilder<unknown>;
  #compiled: { readonly text: KindText; readonly parameters: readonly unknown[] } | undefined;

  /** It is compiled when it is first sent. To compile it each time would cost a fifth of a request. */
  constructor(
    sender: Pick<Sender, 'run'>,
    particulars: Particulars,
    write: (given: Given) => RawBuilder<unknown>,
  ) {
    this.#sender = sender;
    this.#particulars = particulars;
    this.#write = write;
  }

  run(given: Given): Promise<readonly Row[]> {
    this.#compiled ??= this.#compile();
    const { text, parameters } = this.#compiled;
    const values = parameters.map((parameter) =>
      parameter instanceof Placeholder ? given[parameter.name] : parameter,
    );
    return this.#sender.run(text, values) as Promise<readonly Row[]>;
  }

  #compile() {
    const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });
    const { sql, parameters } = compile(this.#write(placeholders as Given));
    const { key } = this.#particulars;
    const keyAt = parameters.findIndex((one) => one instanceof Placeholder && one.name === key);
    if (key && keyAt < 0) throw new Error(`a batched statement does not use its ${key}`);
    // On one line, as logs and traces show it. No text in it has more than one space in a row.
    const text = { ...this.#particulars, keyAt, ...nameStatement(sql.replace(/\s+/g, ' ').trim()) };
    return { text, parameters };
  }
}

/** A statement about one row. One statement carries out those of many requests: each value is sent as a list of one. */
export class BatchedStatement<Given extends Values, Row> {
  readonly #statement: PreparedStatement<Values, Row>;

  constructor(statement: PreparedStatement<Values, Row>) {
    this.#statement = statement;
  }

  run(given: Given): Promise<Row | undefined> {
    const lists: Record<string, readonly [unknown]> = {};
    for (const name in given) lists[name] = [given[name]];
    return this.#statement.run(lists).then(([row]) => row);
  }
}

/** The text of a statement. Only kysely's compiler is used: all of kysely would enlarge a function bundle by a seventh. */
export function compile(written: RawBuilder<unknown>): CompiledQuery {
  return new PostgresQueryCompiler().compileQuery(written.toOperationNode() as RawNode, createQueryId());
}

/** The place of a value in a statement while the statement is written. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}
