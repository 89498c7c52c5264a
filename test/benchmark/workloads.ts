import { type Request, USERS } from '../lab/load/wire.ts';
import type { RawResponse } from '../stage/raw-request.ts';
import { emailOf, idOf, USERS_WITH_EXTERNAL_ID } from './stage/users.ts';

export type Material = {
  /** The number of any user, of those that were there from the beginning. */
  readonly anyUser: () => number;
  /** The token that is the same at every request. */
  readonly token: string;
  readonly freshTokens: readonly string[];
  /** How many requests of this workload the target has had; so nothing that has to be new comes twice. */
  readonly begin: number;
  readonly prepared: string;
};

/** Sends one request with the token, and reads its response. */
type Ask = (target: string) => Promise<RawResponse>;

/** One kind of load: an endless row of requests, each answered with the same status. */
export type Workload = {
  readonly name: string;
  readonly title: string;
  readonly status: number;
  /** Whether rows are written, so that there is something to vacuum. */
  readonly writes?: boolean;
  /** Members of the response that are new each time, and so not compared. */
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
  readonly requests: (material: Material) => () => Request;
};

const reads = (
  name: string,
  title: string,
  targets: (material: Material) => () => string,
  more: Partial<Workload> = {},
): Workload => ({
  ...{ name, title, status: 200 },
  requests(material) {
    const nextTarget = targets(material);
    return () => ({ method: 'GET', target: nextTarget(), token: material.token });
  },
  ...more,
});

/** A workload of writes with one token, each with a number that the target has not seen. */
const writes = (
  name: string,
  title: string,
  request: (number: number, material: Material) => Pick<Request, 'method' | 'target' | 'body'>,
  more: Partial<Workload> = {},
): Workload => ({
  ...{ name, title, status: 201, writes: true, varying: ['id', 'created_at', 'updated_at'] },
  requests(material) {
    let sent = material.begin;
    return () => {
      sent += 1;
      return { ...request(sent, material), token: material.token };
    };
  },
  ...more,
});

const anyUser = ({ anyUser: next }: Material) => USERS + idOf(next());

const newUser = (name: string) => (number: number) => ({
  method: 'POST' as const,
  target: USERS,
  body: `{"email":"${name.toLowerCase()}-${number}@example.com","full_name":"${name} ${number}"}`,
});

const USERS_PER_BATCH = 100;
const USERS_PER_PAGE = 100;
const MAX_USERS_PER_PAGE = 1000;

const DEEP_SHARE = 0.9;

const get = reads('get', 'get by id', (material) => () => anyUser(material));

const update = writes(
  'update',
  'update',
  (number, material) => ({
    ...{ method: 'PATCH', target: anyUser(material) },
    body: `{"full_name":"Updated ${number}"}`,
  }),
  { status: 200, varying: ['updated_at'] },
);

/** All kinds of load, in the order they are run. One with a pace stands after the one it is a part of. */
export const workloads: readonly Workload[] = [
  {
    // The probe: neither token nor statement.
    ...{ name: 'health', title: '/health', status: 200 },
    requests: () => () => ({ method: 'GET', target: '/health' }),
  },
  get,
  // Half of the load that the service and Go can bear: what callers wait on a good day.
  { ...get, name: 'get-half', title: 'get by id at half of peak load', pace: { of: 'get', part: 0.5 } },
  {
    // The target has not seen the token for longer than any cache remembers.
    ...{ name: 'fresh-token', title: 'get by id, a fresh token every time', status: 200 },
    requests(material) {
      const { freshTokens, begin } = material;
      let sent = begin;
      return () => {
        const token = freshTokens[sent++ % freshTokens.length] as string;
        return { method: 'GET', target: anyUser(material), token };
      };
    },
  },
  writes('create', 'create', newUser('Created')),
  // Each is sent when the one before has been answered, so that no two are carried out by one statement.
  writes('create-alone', 'create, one at a time', newUser('Alone'), { connections: 1 }),
  update,
  writes('batch', `batch create of ${USERS_PER_BATCH}`, (number) => {
    const items = Array.from(
      { length: USERS_PER_BATCH },
      (_, n) => `{"email":"${number}-${500 + n}@example.com"}`,
    );
    return { method: 'POST', target: `${USERS}batch`, body: `{"items":[${items}]}` };
  }),
  reads('list', `list of ${USERS_PER_PAGE} at the start`, () => () => `${USERS}?limit=${USERS_PER_PAGE}`),
  // Far behind the first users, by the key that the links carry.
  reads('deep-list', `list of ${USERS_PER_PAGE} by key, deep inside`, prepared, {
    async prepare(ask, users) {
      let page: string | undefined = `${USERS}?limit=${MAX_USERS_PER_PAGE}`;
      for (let seen = MAX_USERS_PER_PAGE; page && seen < users * DEEP_SHARE; seen += MAX_USERS_PER_PAGE) {
        page = nextPage(await ask(page));
      }
      return page?.replace(`limit=${MAX_USERS_PER_PAGE}`, `limit=${USERS_PER_PAGE}`);
    },
  }),
  reads('by-email', 'lookup by email', (material) => () => byEmail(material.anyUser()), {
    prepare: (ask) => hasOneUser(ask, byEmail(1)),
  }),
  reads('by-external-id', 'lookup by external id', (material) => () => byExternalId(material.anyUser()), {
    prepare: (ask) => hasOneUser(ask, byExternalId(1)),
  }),
  // A reader of the changes that has seen them all.
  reads('changes', 'changes, at the head', prepared, {
    prepare: async (ask) => nextPage(await ask(`${USERS}changes?cursor=now&limit=0`)),
  }),
];

function prepared({ prepared: target }: Material): () => string {
  return () => target;
}

function byEmail(number: number): string {
  return `${USERS}?email=${encodeURIComponent(emailOf(number))}`;
}

function byExternalId(number: number): string {
  return `${USERS}?external_id=external-${1 + (number % USERS_WITH_EXTERNAL_ID)}`;
}

/** Whether a target has a filter: one that does not know it returns all users. */
async function hasOneUser(ask: Ask, target: string): Promise<string | undefined> {
  const { status, body } = await ask(target);
  return status === 200 && JSON.parse(body).length === 1 ? 'has it' : undefined;
}

/** The target of the link to the next page; undefined without one. */
function nextPage({ status, headers }: RawResponse): string | undefined {
  return status === 200 ? /<([^>]*)>;\s*rel="?next"?/.exec(headers.link ?? '')?.[1] : undefined;
}
