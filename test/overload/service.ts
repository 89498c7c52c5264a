import type { Variables } from '../../lib/settings/environment.ts';
import { TOKEN } from '../lab/load/load.ts';
import { USERS, wireOf } from '../lab/load/wire.ts';
import type { Stage } from '../lab/stage/stage.ts';

/** What callers send: reads by id and updates, or batches of users that are there already. */
export type Requests = 'reads-and-updates' | 'batches';

export type LoadedService = Awaited<ReturnType<typeof startLoadedService>>;

const STORED_USERS = 2000;
const USERS_PER_BATCH = 100;

/** Starts the built host with some users in its table; `runBy` is a command that runs it. */
export async function startLoadedService(
  { startService, issuer, postgres }: Stage,
  what: Requests,
  variables: Variables,
  runBy: readonly string[],
) {
  const service = await startService(variables, { runBy });
  const sign = (claims: { readonly sub?: string; readonly jti?: string } = {}) =>
    issuer.sign({ ...claims, exp: Math.floor(Date.now() / 1000) + 7200 });
  const rows = await postgres.query(
    `INSERT INTO users (id, email, full_name)
     SELECT uuidv7(), 'user-' || n || '@example.com', 'User ' || n FROM generate_series(1, ${STORED_USERS}) AS n
     RETURNING id`,
  );
  await postgres.query('VACUUM ANALYZE users');
  const ids = rows.map(({ id }) => String(id));
  return {
    ...service,
    /** As HTTP/1.1 writes them. */
    requests: REQUESTS[what](ids, await sign()),
    /** The same for one of ten callers, each with users of its own. Another token is put in. */
    requestsOf: (caller: number) =>
      REQUESTS[what](
        ids.filter((_, index) => index % 10 === caller),
        TOKEN,
      ),
    sign,
  };
}

const REQUESTS: Readonly<Record<Requests, (ids: readonly string[], token: string) => readonly string[]>> = {
  /** Four reads by id for each update of a name. */
  'reads-and-updates': (ids, token) =>
    ids.map((id, index) => {
      const target = USERS + id;
      if (index % 5 > 0) return wireOf({ method: 'GET', target, token });
      return wireOf({ method: 'PATCH', target, token, body: JSON.stringify({ full_name: `Name ${index}` }) });
    }),
  /** Of 100 users each, none of whom is stored a second time. */
  batches: (ids, token) =>
    Array.from({ length: Math.floor(ids.length / USERS_PER_BATCH) }, (_, index) => {
      const items = Array.from({ length: USERS_PER_BATCH }, (_, n) => ({
        email: `user-${index * USERS_PER_BATCH + n + 1}@example.com`,
      }));
      const body = JSON.stringify({ mode: 'partial', items });
      return wireOf({ method: 'POST', target: `${USERS}batch`, token, body });
    }),
};
