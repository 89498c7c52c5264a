import { type Request, USERS } from '../lab/load/wire.ts';
import type { RawAnswer } from '../stage/raw-request.ts';
import { emailOf, idOf, USERS_WITH_EXTERNAL_ID } from './stage/users.ts';

/** What requests are made of. */
export type Material = {
  /** The number of any user, of those that were there from the beginning. */
  readonly anyUser: () => number;
  /** The token that is the same at every request. */
  readonly token: string;
  readonly freshTokens: readonly string[];
  /** How many requests of this workload the target has had; so nothing that has to be new comes twice. */
  readonly begin: number;
  /** What `prepare` gave. */
  readonly prepared: string;
};

/** Sends one request with the token, and reads its answer. */
type Ask = (target: string) => Promise<RawAnswer>;

/** One kind of load: an endless row of requests, each answered with the same status. */
export type Workload = {
  readonly name: string;
  readonly title: string;
  readonly status: number;
  /** Whether rows are written, so that there is something to vacuum. */
  readonly writes?: boolean;
  /** Members of the answer that are new each time, and so not compared. */
  readonly varying?: readonly string[];
  /**
   * The part of the throughput of the workload `of` that is requested, of the lowest among the target, the service and
   * Go. Without it, as many requests are sent as are answered.
   */
  readonly pace?: { readonly of: string; readonly part: number };
  /** How many connections it has, whatever the others have. */
  readonly connections?: number;
  /** Asks a target for what the requests need; undefined when the target has nothing like it. */
  readonly prepare?: (ask: Ask, users: number) => Promise<string | undefined>;
  /** Makes the next request, from then on. */
  readonly requests: (material: Material) => () => Request;
};

/** Any user by id, always with the same token. */
const get: Workload = {
  name: 'get',
  title: 'get by id',
  status: 200,
  requests:
    ({ anyUser, token }) =>
    () => ({ method: 'GET', target: USERS + idOf(anyUser()), token }),
};

/** A new user each time. */
const create: Workload = {
  name: 'create',
  title: 'create',
  status: 201,
  writes: true,
  varying: ['id', 'created_at', 'updated_at'],
  requests: (material) => newUsers('Created', material),
};

/** Another name for any user. */
const update: Workload = {
  name: 'update',
  title: 'update',
  status: 200,
  writes: true,
  varying: ['updated_at'],
  requests: ({ anyUser, token, begin }) => {
    let sent = begin;
    return () => {
      sent += 1;
      const body = `{"full_name":"Updated ${sent}"}`;
      return { method: 'PATCH', target: USERS + idOf(anyUser()), token, body };
    };
  },
};

const USERS_PER_BATCH = 100;
const USERS_PER_PAGE = 100;
const MAX_USERS_PER_PAGE = 1000;

/** How far into the users the deep page lies. */
const DEEP_SHARE = 0.9;

/** In the mix, one request in this many is an update. */
const REQUESTS_PER_UPDATE = 5;

/** All kinds of load, in the order they are run. One with a pace stands after the one it is a part of. */
export const workloads: readonly Workload[] = [
  {
    // The probe: neither token nor statement.
    name: 'health',
    title: '/health',
    status: 200,
    requests: () => () => ({ method: 'GET', target: '/health' }),
  },
  get,
  // Half of the load that the service and Go can bear: what callers wait on a good day.
  { ...get, name: 'get-half', title: 'get by id at half of peak load', pace: { of: 'get', part: 0.5 } },
  {
    // The target has not seen the token for longer than any cache remembers.
    name: 'fresh-token',
    title: 'get by id, a fresh token every time',
    status: 200,
    requests({ anyUser, freshTokens, begin }) {
      let sent = begin;
      return () => {
        const token = freshTokens[sent++ % freshTokens.length] as string;
        return { method: 'GET', target: USERS + idOf(anyUser()), token };
      };
    },
  },
  create,
  {
    // Each is sent when the one before has been answered, so that no two are carried out by one statement.
    ...create,
    name: 'create-alone',
    title: 'create, one at a time',
    connections: 1,
    requests: (material) => newUsers('Alone', material),
  },
  update,
  {
    name: 'batch',
    title: `batch create of ${USERS_PER_BATCH}`,
    status: 201,
    writes: true,
    varying: ['id', 'created_at', 'updated_at'],
    requests({ token, begin }) {
      let sent = begin;
      return () => {
        sent += 1;
        const items = Array.from(
          { length: USERS_PER_BATCH },
          (_, n) => `{"email":"${sent}-${500 + n}@example.com"}`,
        );
        return { method: 'POST', target: `${USERS}batch`, token, body: `{"items":[${items}]}` };
      };
    },
  },
  {
    name: 'list',
    title: `list of ${USERS_PER_PAGE} at the start`,
    status: 200,
    requests:
      ({ token }) =>
      () => ({ method: 'GET', target: `${USERS}?limit=${USERS_PER_PAGE}`, token }),
  },
  {
    // Far behind the first users, by the key that the links carry.
    name: 'deep-list',
    title: `list of ${USERS_PER_PAGE} by key, deep inside`,
    status: 200,
    async prepare(ask, users) {
      let page: string | undefined = `${USERS}?limit=${MAX_USERS_PER_PAGE}`;
      for (let seen = 0; page !== undefined && seen < users * DEEP_SHARE; seen += MAX_USERS_PER_PAGE) {
        page = nextPage(await ask(page));
      }
      return page?.replace(`limit=${MAX_USERS_PER_PAGE}`, `limit=${USERS_PER_PAGE}`);
    },
    requests: readsOfPrepared,
  },
  {
    name: 'by-email',
    title: 'lookup by email',
    status: 200,
    prepare: (ask) => hasOneUser(ask, `${USERS}?email=${encodeURIComponent(emailOf(1))}`),
    requests({ anyUser, token }) {
      return () => ({
        method: 'GET',
        target: `${USERS}?email=${encodeURIComponent(emailOf(anyUser()))}`,
        token,
      });
    },
  },
  {
    name: 'by-external-id',
    title: 'lookup by external id',
    status: 200,
    prepare: (ask) => hasOneUser(ask, `${USERS}?external_id=external-1`),
    requests({ anyUser, token }) {
      return () => {
        const number = 1 + (anyUser() % USERS_WITH_EXTERNAL_ID);
        return { method: 'GET', target: `${USERS}?external_id=external-${number}`, token };
      };
    },
  },
  {
    name: 'mix',
    title: 'mix: 80 % get, 20 % update',
    status: 200,
    writes: true,
    varying: ['updated_at', 'full_name'],
    requests(material) {
      const [nextGet, nextUpdate] = [get.requests(material), update.requests(material)];
      let sent = 0;
      return () => {
        sent += 1;
        return sent % REQUESTS_PER_UPDATE === 0 ? nextUpdate() : nextGet();
      };
    },
  },
  {
    // A reader of the changes that has seen them all.
    name: 'changes',
    title: 'changes, at the head',
    status: 200,
    prepare: async (ask) => nextPage(await ask(`${USERS}changes?cursor=now&limit=0`)),
    requests: readsOfPrepared,
  },
];

function newUsers(name: string, { token, begin }: Material): () => Request {
  let sent = begin;
  return () => {
    sent += 1;
    const body = `{"email":"${name.toLowerCase()}-${sent}@example.com","full_name":"${name} ${sent}"}`;
    return { method: 'POST', target: USERS, token, body };
  };
}

/** Whether a target has a filter: one that does not know it returns all users. */
async function hasOneUser(ask: Ask, target: string): Promise<string | undefined> {
  const { status, body } = await ask(target);
  return status === 200 && JSON.parse(body).length === 1 ? 'has it' : undefined;
}

function readsOfPrepared({ token, prepared }: Material): () => Request {
  return () => ({ method: 'GET', target: prepared, token });
}

/** The target of the link to the next page; undefined without one. */
function nextPage({ status, headers }: RawAnswer): string | undefined {
  return status === 200 ? /<([^>]*)>;\s*rel="?next"?/.exec(headers.link ?? '')?.[1] : undefined;
}
