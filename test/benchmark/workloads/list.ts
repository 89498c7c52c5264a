import { nextPage, USERS, type Workload } from './workload.ts';

const PAGE = 100;
const LARGEST_PAGE = 1000;

/** How far into the users the deep page lies. */
const DEPTH = 0.9;

/** The first hundred users. */
export const list: Workload = {
  name: 'list',
  title: `list of ${PAGE} at the start`,
  status: 200,
  requests:
    ({ token }) =>
    () => ({ method: 'GET', target: `${USERS}?limit=${PAGE}`, token }),
};

/** A hundred users far behind the first, by the key that the links carry. */
export const deepList: Workload = {
  name: 'deep-list',
  title: `list of ${PAGE} by key, deep inside`,
  status: 200,
  async prepare(ask, users) {
    let page: string | undefined = `${USERS}?limit=${LARGEST_PAGE}`;
    for (let seen = 0; page !== undefined && seen < users * DEPTH; seen += LARGEST_PAGE) {
      page = nextPage(await ask(page));
    }
    return page?.replace(`limit=${LARGEST_PAGE}`, `limit=${PAGE}`);
  },
  requests:
    ({ token, prepared }) =>
    () => ({ method: 'GET', target: prepared, token }),
};
