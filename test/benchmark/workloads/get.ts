import { idOf } from '../stage/users.ts';
import { type Material, type Request, USERS, type Workload } from './workload.ts';

/** Any user by id, always with the same token. */
export const get: Workload = { name: 'get', title: 'get by id', status: 200, requests: readsOfAny };

/** The same at half of the load that the target can bear: what callers wait on a good day. */
export const getAtHalfLoad: Workload = {
  ...get,
  name: 'get-half',
  title: 'get by id at half of peak load',
  pace: { of: 'get', part: 0.5 },
};

function readsOfAny({ anyUser, token }: Material): () => Request {
  return () => ({ method: 'GET', target: USERS + idOf(anyUser()), token });
}
