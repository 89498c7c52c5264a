import { idOf } from '../stage/users.ts';
import { USERS, type Workload } from './workload.ts';

/** Any user by id, with a token that the target has not seen for longer than any cache remembers. */
export const freshToken: Workload = {
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
};
