import pg from 'pg';

/** How to connect to a PostgreSQL, and to a database in it. */
export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** Runs statements in a database, on a connection of its own, and resolves with the rows of the last one. */
export async function inDatabase(
  server: PostgresServer & Pick<pg.ClientConfig, 'connectionTimeoutMillis'>,
  ...statements: readonly string[]
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ ...server, ssl: false });
  client.on('error', () => {});
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
