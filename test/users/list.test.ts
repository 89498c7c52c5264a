import { beforeAll, describe, expect, test } from 'vitest';
import { invalid, type ServiceResponse, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { storedUsers } from './stored-users.ts';

const service = serviceUnderTest();
let all: readonly UserBody[];

/** 1,005 users, some of the same millisecond, stored in another order than the list has. */
beforeAll(async () => {
  all = await storedUsers(
    service,
    `INSERT INTO users (id, email, created_at, updated_at)
     SELECT gen_random_uuid(), 'user-' || n || '@example.com', t, t
     FROM generate_series(1, 1005) AS n,
          LATERAL (SELECT '2026-01-01T00:00:00Z'::timestamptz + (1005 - n / 3) * interval '1 ms' AS t) AS times`,
  );
});

const list = (query = '') => service.call('GET', `${USERS}${query}`);

/** A page that is not the last, or the last one. */
function page(from: number, to: number): ServiceResponse {
  const link = { link: expect.stringMatching(/^<\/api\/v1\/users\/\?[!-;=?-~]+>; rel="next"$/) };
  return success(200, all.slice(from, to), to < all.length ? link : {});
}

describe('the list', () => {
  test('has 100 users by default, ordered by created_at and then id, oldest first', async () => {
    expect(await list()).toEqual(page(0, 100));
  });

  test('orders users of the same millisecond', () => {
    expect(new Set(all.map(({ created_at }) => created_at)).size).toBeLessThan(all.length / 2);
  });

  test.each([
    ['?limit=1', 0, 1],
    ['?limit=1000', 0, 1000],
    ['?skip=5&limit=3', 5, 8],
    ['?skip=1000', 1000, 1005],
    ['?skip=%35&li%6Dit=3', 5, 8],
  ])('%s is users %i to %i', async (query, from, to) => {
    expect(await list(query)).toEqual(page(from, to));
  });

  test.each(['?skip=1005', '?skip=2147483647&limit=1000', '?email=user-7@example.com&skip=1'])(
    'is [] beyond its last user: %s',
    async (query) => {
      expect(await list(query)).toEqual(success(200, []));
    },
  );

  test('has a new user at its end', async () => {
    const created = await service.createUser({ email: 'last@example.com' });
    const last = await list('?skip=1005');
    await service.call('DELETE', USERS + created.id);

    expect(last.body).toEqual([created]);
  });
});

test.each([
  ...['?offset=5', '?limit[x]=a&limit[0][]=a&limit[100000]=a&[]limit=a&limit[=a&limit]=a', '?Limit=5'],
  ...['?LIMIT=a&SKIP=b', '?__proto__=1&a=1&a=2', '?&&=&x', '?%zz', '??limit=x'],
])('an unknown query parameter is ignored: %s', async (query) => {
  expect(await list(query)).toEqual(page(0, 100));
});

describe('422', () => {
  test.each([
    ...['limit=0', 'limit=1001', 'limit=-1', 'limit', 'limit=%2B5', 'limit=5.0', 'limit=1e2', 'limit=0x10'],
    ...['limit=10%0A', 'limit=%D9%A1', 'limit=%zz', 'skip=-1', 'skip=2147483648', 'skip=1;limit=5'],
  ])('is the response to an invalid value: %s', async (query) => {
    const name = query.replace(/\W.*/s, '');

    expect(await list(`?${query}`)).toEqual(invalid(USERS, name));
  });

  test.each([
    ['limit=5&limit=5', 'limit'],
    ['limit=5&skip=1&limit=6', 'limit'],
    ['limit=5&%6Cimit=5', 'limit'],
    ['skip=-1&limit=0', 'skip', 'limit'],
    ['skip=1&skip=2&limit=0', 'skip', 'limit'],
  ])('names repeated query parameters, and all faults at once: %s', async (query, ...names) => {
    expect(await list(`?${query}`)).toEqual(invalid(USERS, ...names));
  });
});
