import { nextPage, USERS, type Workload } from './workload.ts';

/** A reader of the changes that has seen them all. */
export const changesAtHead: Workload = {
  name: 'changes',
  title: 'changes, at the head',
  status: 200,
  prepare: async (ask) => nextPage(await ask(`${USERS}changes?cursor=now&limit=0`)),
  requests:
    ({ token, prepared }) =>
    () => ({ method: 'GET', target: prepared, token }),
};
