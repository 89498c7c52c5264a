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
  const [coordinator, ...workers] = nodes as [PostgresServer, ...PostgresServer[]];
  await inDatabase(
    { ...coordinator, database },
    `SELECT citus_set_coordinator_host('${coordinator.host}', ${coordinator.port})`,
    ...workers.map(({ host, port }) => `SELECT citus_add_node('${host}', ${port})`),
  );
}

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
