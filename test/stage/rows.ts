import pg from 'pg';

/** How to connect to a PostgreSQL, and to a database in it. */
export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

type Connectable = PostgresServer & Pick<pg.ClientConfig, 'connectionTimeoutMillis'>;

/** Connects to a database. PostgreSQL may end the connection at any time. */
export async function connectToDatabase(server: Connectable): Promise<pg.Client> {
  const client = new pg.Client({ ...server, ssl: false });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** Runs statements in a database, on a connection of its own, and resolves with the rows of the last one. */
export async function inDatabase(
  server: Connectable,
  ...statements: readonly string[]
): Promise<Record<string, unknown>[]> {
  const client = await connectToDatabase(server);
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
