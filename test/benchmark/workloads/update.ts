import { idOf } from '../stage/users.ts';
import { type Material, type Request, USERS, type Workload } from './workload.ts';

/** Another name for any user. */
export const update: Workload = {
  name: 'update',
  title: 'update',
  status: 200,
  writes: true,
  varying: ['updated_at'],
  requests: updateOfAny,
};

/** The requests of `update`. */
export function updateOfAny({ anyUser, token, begin }: Material): () => Request {
  let sent = begin;
  return () => {
    sent += 1;
    const body = `{"full_name":"Updated ${sent}"}`;
    return { method: 'PATCH', target: USERS + idOf(anyUser()), token, body };
  };
}
