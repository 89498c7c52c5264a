import { type Material, type Request, USERS, type Workload } from './workload.ts';

/** A new user each time. */
export const create: Workload = {
  name: 'create',
  title: 'create',
  status: 201,
  writes: true,
  varying: ['id', 'created_at', 'updated_at'],
  requests: (material) => newUsers('Created', material),
};

/** The same, each sent when the one before has been answered, so that no two are carried out by one statement. */
export const createAlone: Workload = {
  ...create,
  name: 'create-alone',
  title: 'create, one at a time',
  connections: 1,
  requests: (material) => newUsers('Alone', material),
};

function newUsers(name: string, { token, begin }: Material): () => Request {
  let sent = begin;
  return () => {
    sent += 1;
    const body = `{"email":"${name.toLowerCase()}-${sent}@example.com","full_name":"${name} ${sent}"}`;
    return { method: 'POST', target: USERS, token, body };
  };
}
