import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../host/development/postgres.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/built-service.ts';
import { removeDataFolder } from '../stage/data-folder.ts';
import { hastySettings } from '../stage/postgres.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { TOKEN } from './load.ts';

/** What callers send: reads by id and updates, or batches of users that are there already. */
export type Load = 'reads-and-updates' | 'batches';

/** Starts the built host over a PostgreSQL of its own with so many users; `runBy` is a command that runs it. */
export async function startStage(users: number, load: Load, variables: Variables, runBy: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'user-management-overload-'));
  const dataFolder = join(folder, 'postgres');
  const [postgres, issuer] = await Promise.all([
    startPostgres({ dataFolder, settings: hastySettings }),
    startIssuer(),
  ]);
  const environment = environmentOf({ ...postgres, name: postgres.database, drop: async () => [] }, issuer);
  const host = await startBuiltHost({ ...environment, ...variables }, { runBy });
  const url = await host.untilListening();
  await untilReady(url);
  const sign = (claims: { sub?: string; jti?: string } = {}) =>
    issuer.sign({ ...claims, exp: Math.floor(Date.now() / 1000) + 7200 });
  const token = await sign();
  const ids = await storeUsers(postgres.url, users);

  return {
    url,
    requests: REQUESTS[load](ids, token),
    /** The same for one of ten callers, each with users of its own. Another token is put in. */
    requestsOf: (caller: number) =>
      REQUESTS[load](
        ids.filter((_, index) => index % 10 === caller),
        TOKEN,
      ),
    sign,
    events: host.events,
    isAlive: host.isAlive,
    processId: host.processId,
    async stop(): Promise<void> {
      await host.remove();
      await Promise.all([issuer.stop(), postgres.stop()]);
      await removeDataFolder(dataFolder);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const BATCH = 100;

const emailOf = (number: number) => `user-${number}@example.com`;

/** Rows of the table `users`; gives their ids. */
async function storeUsers(connectionString: string, count: number): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString, ssl: false });
  await client.connect();
  const { rows } = await client.query(
    `INSERT INTO users (id, email, full_name)
     SELECT uuidv7(), 'user-' || n || '@example.com', 'User ' || n FROM generate_series(1, ${count}) AS n
     RETURNING id`,
  );
  await client.query('VACUUM ANALYZE users');
  await client.end();
  return rows.map(({ id }) => id);
}

/** As HTTP/1.1 writes them. */
const REQUESTS: Readonly<Record<Load, (ids: readonly string[], token: string) => readonly string[]>> = {
  /** Four reads by id for each update of a name. */
  'reads-and-updates': (ids, token) =>
    ids.map((id, index) =>
      index % 5 > 0 ? request('GET', id, token) : request('PATCH', id, token, { full_name: `Name ${index}` }),
    ),
  /** Of 100 users each, none of whom is stored a second time. */
  batches: (ids, token) =>
    Array.from({ length: Math.floor(ids.length / BATCH) }, (_, index) => {
      const items = Array.from({ length: BATCH }, (_, n) => ({ email: emailOf(index * BATCH + n + 1) }));
      return request('POST', 'batch', token, { mode: 'partial', items });
    }),
};

function request(method: string, path: string, token: string, content?: object): string {
  const head = `${method} /api/v1/users/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n`;
  if (!content) return `${head}\r\n`;
  const body = JSON.stringify(content);
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
