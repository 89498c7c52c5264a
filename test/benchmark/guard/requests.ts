import { USERS } from '../../lab/load/wire.ts';
import { emailOf, idOf } from '../stage/users.ts';

/** A request that the guard sends, and the status of its answer. */
export type Request = {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly token?: string;
  readonly body?: string;
};

/** What requests are made of. */
export type Material = {
  /** The same at every request. */
  readonly token: string;
  /** One for each request. */
  readonly fresh: readonly string[];
  /** The page behind the last change. */
  readonly head: string;
};

/** So many users have to be there: a number is used once in each workload. */
export const USERS_THERE = 1000;

const BATCH = 100;

/** Numbers of one length: bytes are to be the same for each. */
const FIRST = 500;

/**
 * Requests of each kind, by its name; `index` is how many were sent before. Reads come first, for what is written makes
 * pages longer, and deletions last.
 */
export const requestsOf = ({ token, fresh, head }: Material) =>
  ({
    health: () => ({ method: 'GET', path: '/health', status: 200 }),
    get: (index) => ({ ...read(USERS + idOf(FIRST + index)), token }),
    'get, fresh token': (index) => ({
      ...read(USERS + idOf(FIRST + index)),
      token: fresh[index] as string,
    }),
    'list of 100': () => ({ ...read(`${USERS}?limit=100`), token }),
    'lookup by email': (index) => ({
      ...read(`${USERS}?email=${encodeURIComponent(emailOf(FIRST + index))}`),
      token,
    }),
    'changes, at the head': () => ({ ...read(head), token }),
    create: (index) => ({
      method: 'POST',
      path: USERS,
      status: 201,
      token,
      body: `{"email":"created-${FIRST + index}@example.com","full_name":"Created ${FIRST + index}"}`,
    }),
    update: (index) => ({
      method: 'PATCH',
      path: USERS + idOf(FIRST + index),
      status: 200,
      token,
      body: `{"full_name":"Updated ${FIRST + index}"}`,
    }),
    'batch of 100': (index) => ({
      method: 'POST',
      path: `${USERS}batch`,
      status: 201,
      token,
      body: `{"items":[${Array.from({ length: BATCH }, (_, item) => `{"email":"${FIRST + index}-${FIRST + item}@example.com"}`)}]}`,
    }),
    delete: (index) => ({ method: 'DELETE', path: USERS + idOf(FIRST + index), status: 204, token }),
  }) as const satisfies Record<string, (index: number) => Request>;

const read = (path: string) => ({ method: 'GET', path, status: 200 });
