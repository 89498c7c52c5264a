import { type DatabaseConnection, type Driver, Kysely, PostgresAdapter, PostgresQueryCompiler } from 'kysely';
import type { QueryResult } from 'pg';

/** One statement: its text and the values of its parameters. */
export type Statement = { readonly sql: string; readonly parameters: readonly unknown[] };

/** Sends one statement, and resolves with what PostgreSQL answers. */
export type Send = (statement: Statement) => Promise<Pick<QueryResult, 'rows' | 'rowCount'>>;

/** Queries as kysely writes and types them, each sent as one statement: there is no session and no transaction. */
export function queriesOver<Schema>(send: Send): Kysely<Schema> {
  return new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => singleStatementDriver(send),
      createIntrospector: refuse,
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
}

function singleStatementDriver(send: Send): Driver {
  const connection: DatabaseConnection = {
    async executeQuery({ sql, parameters }) {
      const { rows, rowCount } = await send({ sql, parameters });
      return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
    },
    streamQuery: refuse,
  };
  return {
    init: async () => {},
    acquireConnection: async () => connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    releaseConnection: async () => {},
    destroy: async () => {},
  };
}

function refuse(): never {
  throw new Error('the service sends single statements, and asks for no structure');
}
