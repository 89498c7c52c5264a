import pg from 'pg';
import { settings } from './settings.mjs';

/** Ten connections, statements as they come. */
export function plainQuery() {
  const pool = new pg.Pool({ connectionString: settings.postgresUrl, max: 10 });
  return async (_name, text, values) => (await pool.query(text, values)).rows;
}

/** Ten connections, each statement parsed and planned once a connection. */
export function namedQuery() {
  const pool = new pg.Pool({ connectionString: settings.postgresUrl, max: 10 });
  return async (name, text, values) => (await pool.query({ name, text, values })).rows;
}

/** Four connections that each carry many statements at once; named, too. */
export async function pipelinedQuery() {
  const options = { connectionString: settings.postgresUrl, pipeline: true };
  const clients = Array.from({ length: 4 }, () => new pg.Client(options));
  await Promise.all(clients.map((client) => client.connect()));
  let turn = 0;
  return async (name, text, values) => {
    turn = (turn + 1) % clients.length;
    return (await clients[turn].query({ name, text, values })).rows;
  };
}
