import { inject } from 'vitest';
import type { PostgresServer } from '../stage/rows.ts';

export const clientEnvironment = ({ host, port, user, password, database }: PostgresServer) => ({
  PATH: `${inject('postgresPrograms')}:${process.env.PATH}`,
  PGHOST: host,
  PGPORT: String(port),
  PGUSER: user,
  PGPASSWORD: password,
  PGDATABASE: database,
});
