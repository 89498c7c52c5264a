import { USERS, type Workload } from './workload.ts';

/** A new user each time. */
export const create: Workload = {
  name: 'create',
  title: 'create',
  status: 201,
  writes: true,
  varying: ['id', 'created_at', 'updated_at'],
  requests({ token, begin }) {
    let sent = begin;
    return () => {
      sent += 1;
      const body = `{"email":"created-${sent}@example.com","full_name":"Created ${sent}"}`;
      return { method: 'POST', target: USERS, token, body };
    };
  },
};
