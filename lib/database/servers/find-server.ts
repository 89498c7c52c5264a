import type { Settings } from '../../settings.ts';
import { abandon, clientConfig } from './connection.ts';
import { ReportingClient } from './reporting-client.ts';

type Postgres = Settings['postgres'];

/** Where a PostgreSQL listens. */
export type Server = Postgres['servers'][number];

/** A server, and whether it takes writes. */
export type Found = { readonly server: Server; readonly takesWrites: boolean };

/** In milliseconds: so long those are waited for that would be better than what has been found. */
const WAIT_FOR_BETTER = 500;

/** In seconds. */
const CONNECT_TIMEOUT = 1;

/**
 * The server to use now.
 *
 * @throws {AggregateError} when none can be reached
 */
export async function findServer(postgres: Postgres): Promise<Server> {
  return postgres.servers.length === 1 ? postgres.servers[0] : (await askServers(postgres)).server;
}

/**
 * Looks which server to use, as libpq does with `target_session_attrs=read-write`: the first in the list that takes
 * writes. But all are asked at once, and while none takes writes it is the first that can be read.
 *
 * @throws {AggregateError} when none can be reached
 */
export function askServers(postgres: Postgres): Promise<Found> {
  const { servers } = postgres;
  const states: (boolean | Error | 'asked')[] = servers.map(() => 'asked');
  const { promise, resolve, reject } = Promise.withResolvers<Found>();
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    judge();
  }, WAIT_FOR_BETTER);

  function judge(): void {
    const isAsked = (state: unknown) => !isLate && state === 'asked';
    const writer = states.indexOf(true);
    const reader = states.some(isAsked) ? -1 : states.indexOf(false);
    if (writer >= 0 && !states.slice(0, writer).some(isAsked)) take(writer, true);
    else if (writer < 0 && reader >= 0) take(reader, false);
    else if (states.every((state) => state instanceof Error)) {
      reject(new AggregateError(states, states.map(({ message }) => message).join('; ')));
    }
  }

  function take(index: number, takesWrites: boolean): void {
    resolve({ server: servers[index] as Server, takesWrites });
  }

  servers.forEach(async (server, index) => {
    states[index] = await askWhetherItWrites({ ...postgres, servers: [server] }).catch((error) => error);
    judge();
  });
  return promise.finally(() => clearTimeout(late));
}

async function askWhetherItWrites(postgres: Postgres): Promise<boolean> {
  const timeout = Math.max(postgres.poolTimeout, CONNECT_TIMEOUT);
  const client = new ReportingClient(clientConfig(postgres, timeout));
  const giveUp = setTimeout(() => abandon(client), timeout * 1000);
  try {
    await client.connect();
    if (client.takesWrites !== undefined) return client.takesWrites;
    const { rows } = await client.query('show transaction_read_only');
    return rows[0]?.transaction_read_only === 'off';
  } finally {
    clearTimeout(giveUp);
    abandon(client);
  }
}
