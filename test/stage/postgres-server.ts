/** How to reach the PostgreSQL that the tests run against, and a database to connect to for administration. */
export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    postgres: PostgresServer;
  }
}
