import { beforeAll, describe, expect, test } from 'vitest';
import { fields } from '../../lib/users/fields.ts';
import { cursorAfter } from '../../lib/users/list-cursor.ts';
import { UserListQuery } from '../../lib/users/list-query.ts';
import { UserList } from '../../lib/users/user-list.ts';
import { cursorIn, nextOf } from '../stage/changes.ts';
import { invalid, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { statementsRunBy } from '../stage/statements.ts';
import { pagesOf, storedUsers } from './stored-users.ts';

const service = serviceUnderTest();
let all: readonly UserBody[];

beforeAll(async () => {
  // Two milliseconds. Every second user is inactive.
  all = await storedUsers(
    service,
    `INSERT INTO users (id, email, is_active, created_at, updated_at)
     SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, 'user-' || n || '@example.com', n % 2 = 0, t, t
     FROM generate_series(1, 6) AS n,
          LATERAL (SELECT '2026-01-01T00:00:00.123Z'::timestamptz + n / 4 * interval '1 ms' AS t) AS times`,
  );
});

const call = (target: string, method = 'GET') => service.call(method, target);
const list = (query: string) => call(`${USERS}?${query}`);

/** The numbers in the emails of the users of a page. */
const numbersIn = (body: unknown) =>
  (body as UserBody[]).map(({ email }) => email.replace(/\D/g, '')).join('');

/** The parameters of the link to the next page. */
const parametersOf = async (query: string) => new URLSearchParams(nextOf(await list(query)).split('?')[1]);

const cursorOf = async (query: string) => cursorIn(nextOf(await list(query)));

/** A cursor from another source. */
const cursorAt = (created_at: number, filters: Record<string, string> = {}) =>
  cursorAfter({ created_at, id: '00000000-0000-0000-0000-000000000000' }, { sort: 'created_at', ...filters });

const CURSOR_REFUSED = invalid(USERS, 'cursor');

describe('Link leads to the next page', () => {
  test.each([
    ['limit=5', '12345 6'],
    ['limit=1', '1 2 3 4 5 6'],
    ['limit=4&sort=-created_at', '6543 21'],
    ['limit=1&is_active=false&sort=-created_at', '5 3 1'],
    ['limit=2&created_after=2026-01-01T00:00:00.123Z', '45 6'],
    ['limit=2&created_before=2026-01-01T00:00:00.124Z', '12 3'],
    [
      'limit=1&created_after=2026-01-01T01:00:00.12299%2B01:00&created_before=2026-01-01t00:00:00.1231z',
      '1 2 3',
    ],
    ['limit=1&email=USER-3%40example.com', '3'],
    ['limit=2&ids={1},{3},{6}&sort=-created_at&is_active=false', '31'],
    ['limit=1&skip=3', '4 5 6'],
    ['limit=2&skip=0&sort=-created_at', '65 43 21'],
    ['limit=4&skip=1&unknown=1&limits=2', '2345 6'],
    ['limit=1&skip=6', ''],
  ])('%s: %s', async (query, pages) => {
    const withIds = query.replace(/\{(\d)\}/g, (_, number) => all[number - 1]?.id ?? '');
    const walked = await Array.fromAsync(pagesOf(service.call, withIds), numbersIn);

    expect(walked.join(' ')).toBe(pages);
  });

  test('with path and query alone, and only with known parameters', async () => {
    const ids = String(all.map(({ id }) => id));
    const query = `unknown=1&limit=1&ids=${ids}&is_active=true&created_after=2026-01-01T00%3A00%3A00%2B00%3A00`;

    expect((await list(query)).headers.link).toMatch(/^<\/api\/v1\/users\/\?[\w%=&-]+>; rel="next"$/);
    expect(Object.fromEntries(await parametersOf(query))).toEqual({
      is_active: 'true',
      ids,
      created_after: '2026-01-01T00:00:00+00:00',
      sort: 'created_at',
      limit: '1',
      cursor: expect.stringMatching(/^[\w-]+$/),
    });
  });

  test('with skip if the request has a skip above 0, and with cursor otherwise', async () => {
    expect(String(await parametersOf('limit=2&skip=1'))).toBe('sort=created_at&limit=2&skip=3');
    expect([...(await parametersOf('limit=2')).keys()]).toEqual(['sort', 'limit', 'cursor']);
  });

  test.each(['skip=0', 'skip=00'])('with cursor if the request has %s', async (none) => {
    const { link = '' } = (await list('limit=2')).headers;

    expect(await list(`limit=2&${none}`)).toEqual(success(200, all.slice(0, 2), { link }));
  });

  test('with cursor if skip would exceed its maximum', async () => {
    // A row in binary, whose texts are null.
    const row = fields.map(({ sqlType }) => {
      const length = { uuid: 16, timestamptz: 8, boolean: 1, text: 0 }[sqlType];
      const field = Buffer.alloc(4 + length);
      field.writeInt32BE(length || -1);
      return field;
    });
    const rows = Array(2).fill({ bytes: Buffer.concat(row), offset: 0 });
    const list = new UserList(statementsRunBy(async () => rows as never));
    const nextAfter = async (skip: string) =>
      new URLSearchParams((await list.read(UserListQuery.parse({ skip, limit: '1' }))).next?.split('?')[1]);

    expect((await nextAfter('2147483646')).get('skip')).toBe('2147483647');
    expect([...(await nextAfter('2147483647')).keys()]).toEqual(['sort', 'limit', 'cursor']);
  });

  test('with the path without a trailing slash', async () => {
    expect((await call('/api/v1/users?limit=1')).headers.link).toBe((await list('limit=1')).headers.link);
  });

  test('also in the response to HEAD', async () => {
    const { headers, body } = await list('limit=2');
    const length = String(Buffer.byteLength(JSON.stringify(body)));

    expect(await call(`${USERS}?limit=2`, 'HEAD')).toEqual({
      status: 200,
      headers: { ...headers, 'x-request-id': expect.any(String), 'content-length': length },
      body: '',
    });
  });
});

describe('a cursor', () => {
  test('names a position: it does not depend on the limit, which may change from page to page', async () => {
    const cursor = await cursorOf('limit=2');

    expect(numbersIn((await list(`cursor=${cursor}&limit=3`)).body)).toBe('345');
    expect(numbersIn((await list(`cursor=${cursor}`)).body)).toBe('3456');
    expect(await cursorOf('limit=2&skip=0&sort=created_at')).toBe(cursor);
  });

  test('is allowed with skip=0, because some clients fill in defaults', async () => {
    const cursor = await cursorOf('limit=2');

    expect(await list(`cursor=${cursor}&skip=0`)).toEqual(success(200, all.slice(2)));
  });

  test('requires the filters of its link, compared as text after decoding', async () => {
    const after = 'created_after=2026-01-01T00:00:00Z&is_active=true';
    const cursor = await cursorOf(`limit=1&${after}`);
    const encoded = 'is_active=tru%65&created_after=2026%2D01-01T00%3A00:00%5A';

    expect(numbersIn((await list(`cursor=${cursor}&${encoded}`)).body)).toBe('46');
  });

  test('from another source does not lead past a filter', async () => {
    const after = { created_after: '2026-01-01T00:00:00.123Z' };
    const before = { created_before: '2026-01-01T00:00:00.124Z' };
    const early = cursorAt(Date.parse('0001-01-01T00:00:00Z'), after);
    const late = cursorAt(Date.parse('2027-01-01T00:00:00Z'), before);

    expect(await list(`cursor=${early}&${new URLSearchParams(after)}`)).toEqual(success(200, all.slice(3)));
    expect(await list(`cursor=${late}&${new URLSearchParams(before)}`)).toEqual(success(200, []));
  });

  test.each([-210_866_803_200_001, 8_640_000_000_000_001, -(2 ** 62), 2 ** 62])(
    'from another source is malformed if PostgreSQL does not support its time: %i',
    async (created_at) => {
      expect(await list(`cursor=${cursorAt(created_at)}`)).toEqual(CURSOR_REFUSED);
    },
  );

  test.each([
    [-210_866_803_200_000, '123456'],
    [8_640_000_000_000_000, ''],
  ])('may have any time that PostgreSQL supports: %i', async (created_at, found) => {
    expect(numbersIn((await list(`cursor=${cursorAt(created_at)}`)).body)).toBe(found);
  });

  test('is followed after its user is deleted, also if no user is left', async () => {
    const emails = ['x@example.com', 'y@example.com'];
    const fleeting = await Promise.all(emails.map((email) => service.createUser({ email })));
    const beforeLast = await cursorOf('limit=7');
    for (const { id } of fleeting) await service.call('DELETE', USERS + id);

    expect(await list(`cursor=${beforeLast}`)).toEqual(success(200, []));
  });
});

describe('422 names', () => {
  test.each([
    ['filters for a cursor without filters', 'limit=1', 'is_active=true'],
    ['another sort', 'limit=1', 'sort=-created_at'],
    ['no filters for a cursor with filters', 'limit=1&is_active=true', ''],
    ['another value', 'limit=1&is_active=true', 'is_active=false'],
    [
      'the same time in another text',
      'limit=1&created_after=2026-01-01T00:00:00Z',
      'created_after=2026-01-01T00:00:00z',
    ],
    [
      'the value of one filter in another',
      'limit=1&created_after=2026-01-01T00:00:00Z',
      'created_before=2026-01-01T00:00:00Z',
    ],
    ['an email', 'limit=1', 'email=user-3@example.com'],
    ['ids', 'limit=1', 'ids=00000000-0000-0000-0000-000000000001'],
    ['created_before', 'limit=1', 'created_before=2026-01-02T00:00:00Z'],
  ])('cursor for %s beside it', async (_case, query, others) => {
    const cursor = await cursorOf(query);

    expect(cursor).not.toBe('');
    expect(await list(`cursor=${cursor}&${others}`)).toEqual(CURSOR_REFUSED);
  });

  test('skip beside a cursor, and the faults of both', async () => {
    const cursor = await cursorOf('limit=1');

    expect(await list(`cursor=${cursor}&skip=1`)).toEqual(invalid(USERS, 'skip'));
    expect(await list(`skip=1&cursor=x`)).toEqual(invalid(USERS, 'cursor', 'skip'));
    expect(await list(`skip=x&cursor=${cursor}`)).toEqual(invalid(USERS, 'skip'));
  });

  test('a cursor of other filters together with all other faults', async () => {
    const cursor = await cursorOf('limit=1');

    expect(await list(`cursor=${cursor}&is_active=x&sort=x&limit=x&skip=1`)).toEqual(
      invalid(USERS, 'is_active', 'sort', 'limit', 'skip', 'cursor'),
    );
  });

  test('a cursor with any character changed', async () => {
    const cursor = await cursorOf('limit=1');
    const changed = [...cursor].map((character, at) => {
      const other = character === 'A' ? 'B' : 'A';
      return cursor.slice(0, at) + other + cursor.slice(at + 1);
    });

    const responses = await Promise.all(changed.map((text) => list(`cursor=${text}`)));

    expect(cursor).toHaveLength(56);
    expect(responses).toEqual(changed.map(() => CURSOR_REFUSED));
  });

  test.each<readonly [string, (cursor: string) => string]>([
    ['empty', () => ''],
    ['a word', () => 'next'],
    ['shorter by a complete group', (cursor) => cursor.slice(0, -4)],
    ['longer by a complete group', (cursor) => `${cursor}AAAA`],
    ['padded', (cursor) => `${cursor}=`],
    ['with a space after it', (cursor) => `${cursor}+`],
    ['all zeros', () => 'A'.repeat(56)],
    ['very long', () => 'A'.repeat(8000)],
  ])('cursor if it is %s', async (_case, change) => {
    const cursor = change(await cursorOf('limit=1'));

    expect(await list(`cursor=${cursor}`)).toEqual(CURSOR_REFUSED);
  });
});
