import { USERS, type Workload } from './workload.ts';

const ITEMS = 100;

/** A hundred new users in one request. */
export const batch: Workload = {
  name: 'batch',
  title: `batch create of ${ITEMS}`,
  status: 201,
  writes: true,
  varying: ['id', 'created_at', 'updated_at'],
  requests({ token, begin }) {
    let sent = begin;
    return () => {
      sent += 1;
      const items = Array.from({ length: ITEMS }, (_, n) => `{"email":"batch-${sent}-${n}@example.com"}`);
      return { method: 'POST', target: `${USERS}batch`, token, body: `{"items":[${items}]}` };
    };
  },
};
