import {
  type CompiledQuery,
  createQueryId,
  PostgresQueryCompiler,
  type RawBuilder,
  type RawNode,
} from 'kysely';

/** The text of a statement. Only kysely's compiler is used: all of kysely would enlarge a function bundle by a seventh. */
export function compile(written: RawBuilder<unknown>): CompiledQuery {
  return new PostgresQueryCompiler().compileQuery(written.toOperationNode() as RawNode, createQueryId());
}
