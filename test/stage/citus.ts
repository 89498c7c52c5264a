import { blockOf } from './page-blocks.ts';
import { inDatabase, type PostgresServer } from './rows.ts';

/** Whether the tests run over Citus with schema-based sharding. */
export const isCitus = process.env.TEST_POSTGRES_ENGINE === 'citus';

declare module 'vitest' {
  interface ProvidedContext {
    /** The nodes of Citus: the coordinator first. Empty for another PostgreSQL. */
    citus: readonly PostgresServer[];
  }
}

/** Makes databases of the same name at the nodes one database of Citus. The nodes have the database already. */
export async function connectNodes(nodes: readonly PostgresServer[], database: string): Promise<void> {
  for (const node of nodes) await inDatabase({ ...node, database }, 'CREATE EXTENSION citus');
  const [coordinator] = nodes as [PostgresServer];
  await inDatabase(
    { ...coordinator, database },
    atNodes(blockOf('infra/postgresql/citus.md', 'The nodes'), nodes),
  );
}

/** Statements of the page, with the addresses of these nodes in their order. */
export const atNodes = (statements: string, nodes: readonly PostgresServer[]) =>
  nodes.reduce(
    (text, { host, port }) => text.replace(/'[\w-]+\.internal', 5432/, `'${host}', ${port}`),
    statements,
  );

/** Creates a directory of users: a schema that lies wholly on one worker. */
export async function createDirectory(
  coordinator: PostgresServer,
  database: string,
  directory: string,
): Promise<void> {
  await inDatabase(
    { ...coordinator, database },
    'SET citus.enable_schema_based_sharding = on',
    `CREATE SCHEMA ${directory}`,
  );
}
