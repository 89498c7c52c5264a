import {
  type CompiledQuery,
  createQueryId,
  PostgresQueryCompiler,
  type RawBuilder,
  type RawNode,
} from 'kysely';
import type { Sender } from './sender.ts';
import { nameStatement, type StatementText } from './sessions/statement-text.ts';

/** The values of a statement, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** `key` is the name of the value by which a batch hands rows back. */
type Particulars = Omit<StatementText, 'sql' | 'name' | 'keyAt'> & { readonly key?: 'id' | 'key' };

/** A statement that is sent again and again with other values. */
export type PreparedStatement<Given extends Values, Row> = { run(given: Given): Promise<readonly Row[]> };

/** A statement about one row. */
export type BatchedStatement<Given extends Values, Row> = { run(given: Given): Promise<Row | undefined> };

/** It is compiled when it is first sent. To compile it each time would cost a fifth of a request. */
export function prepare<Given extends Values, Row>(
  sender: Pick<Sender, 'run'>,
  particulars: Particulars,
  write: (given: Given) => RawBuilder<unknown>,
): PreparedStatement<Given, Row> {
  let compiled: ReturnType<typeof compileOnce> | undefined;
  return {
    run(given) {
      compiled ??= compileOnce(particulars, write);
      const values = compiled.parameters.map((parameter) =>
        typeof parameter === 'symbol' ? given[String(parameter.description)] : parameter,
      );
      return sender.run(compiled.text, values) as Promise<readonly Row[]>;
    },
  };
}

/** One statement carries out those of many requests about one row each: each value is sent as a list of one. */
export function prepareBatched<Given extends Values, Row>(
  ...statement: Parameters<typeof prepare<Values, Row>>
): BatchedStatement<Given, Row> {
  const prepared = prepare<Values, Row>(...statement);
  return {
    run(given) {
      const lists: Record<string, readonly [unknown]> = {};
      for (const name in given) lists[name] = [given[name]];
      return prepared.run(lists).then(([row]) => row);
    },
  };
}

/** While the statement is written, a symbol with the name of a value takes the place of the value. */
function compileOnce<Given>(
  { key, ...particulars }: Particulars,
  write: (given: Given) => RawBuilder<unknown>,
) {
  const { sql, parameters } = compile(
    write(new Proxy({}, { get: (_, name) => Symbol(String(name)) }) as Given),
  );
  const keyAt = parameters.findIndex((one) => typeof one === 'symbol' && one.description === key);
  if (key && keyAt < 0) throw new Error(`a batched statement does not use its ${key}`);
  // On one line, as logs and traces show it. No text in it has more than one space in a row.
  const text: StatementText = { ...particulars, keyAt, ...nameStatement(sql.replace(/\s+/g, ' ').trim()) };
  return { text, parameters };
}

/** The text of a statement. Only kysely's compiler is used: all of kysely would enlarge a function bundle by a seventh. */
export function compile(written: RawBuilder<unknown>): CompiledQuery {
  return new PostgresQueryCompiler().compileQuery(written.toOperationNode() as RawNode, createQueryId());
}
