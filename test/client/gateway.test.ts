import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  clientCredentials,
  createUsers,
  type Mirror,
  mirror,
  UnexpectedAnswer,
  type Users,
  type UsersOptions,
} from '../../infra/client/src/index.ts';
import { findLink } from '../../infra/client/src/link.ts';
import { startAcceptable } from '../accept/stage.ts';
import { startBalancer } from '../lab/stage/balancer.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startHttpFront } from '../stage/http-front.ts';
import type { RawRequest, RawResponse } from '../stage/raw-request.ts';
import { lastLine, openFiles, runCommand } from './command.ts';
import { copyInMemory } from './copy-in-memory.ts';

const ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
const OTHER = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f71';
const TOKEN = 'header-of-the-token.payload-of-the-token.signature/of+it=';
const JSON_TYPE = 'application/json; charset=utf-8';
/** A page of changes that is not the last one. */
const AFTER_IT = { link: '</api/v1/users/changes?cursor=abc>; rel="next"' };

const user = (values: object = {}) => ({
  id: ID,
  email: 'ada@example.com',
  full_name: null,
  is_active: true,
  created_at: '2026-01-02T03:04:05.678Z',
  updated_at: '2026-01-02T03:04:05.678Z',
  ...values,
});
const change = (values: object = {}) => ({
  specversion: '1.0',
  id: '1-9f86d081',
  source: '/api/v1/users',
  type: 'user.updated',
  subject: ID,
  time: '2026-01-02T03:04:05.678Z',
  datacontenttype: 'application/json',
  data: { version: 2, changed: [], actor: 'a', request_id: 'r' },
  ...values,
});
const PROBLEM = {
  type: 'urn:svc:error:not_found_error',
  title: 'Not Found',
  status: 404,
  detail: 'There is no such user.',
  instance: `/api/v1/users/${ID}`,
};

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): RawResponse => ({
  status,
  headers: { 'content-type': JSON_TYPE, ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const tagged = (status: number, body: unknown, headers = {}) =>
  answer(status, body, { etag: '"1"', ...headers });
const EXPIRED = answer(
  410,
  { ...PROBLEM, type: 'urn:svc:error:cursor_expired_error', status: 410, instance: '/api/v1/users/changes' },
  { 'content-type': 'application/problem+json' },
);
const notFound = (body: object) => answer(404, body, { 'content-type': 'application/problem+json' });
const html = (status: number, body = '<h1>Sign in</h1>') =>
  answer(status, body, { 'content-type': 'text/html' });

let respond: (request: RawRequest) => RawResponse | Promise<RawResponse>;
let requests: RawRequest[] = [];
const gateway = forAllTests(() =>
  startHttpFront(async (request) => {
    requests.push(request);
    return respond(request);
  }),
);
const files = openFiles();
afterAll(files.remove);

const usersBehind = (answers: typeof respond | RawResponse, options: Partial<UsersOptions> = {}) => {
  respond = typeof answers === 'function' ? answers : () => answers;
  requests = [];
  const retry = { attempts: 2, pause: 1 };
  return createUsers({ url: gateway.url, token: () => TOKEN, retry, ...options });
};
const never = () => new Promise<never>(() => {});
const pageTo = (reference: string, body: unknown = []) =>
  answer(200, body, { link: `<${reference}>; rel="next"` });

const reasonFor = (call: Promise<unknown>): Promise<Error> =>
  call.then(
    (value) => Promise.reject(new Error(`accepted: ${JSON.stringify(value)}`)),
    (error) => error,
  );

const CALLS: Readonly<Record<string, (users: Users) => Promise<unknown>>> = {
  create: (users) => users.create({ email: 'ada@example.com' }),
  createAll: (users) => users.createAll([{ email: 'ada@example.com' }]),
  createSome: (users) => users.createSome([{ email: 'ada@example.com' }]),
  get: (users) => users.get(ID),
  find: (users) => users.find(ID),
  findByEmail: (users) => users.findByEmail('ada@example.com'),
  findByExternalId: (users) => users.findByExternalId('hr-1'),
  change: (users) => users.change(ID, { full_name: 'Ada' }),
  update: (users) => users.update(ID, () => ({ full_name: 'Ada' })),
  remove: (users) => users.remove(ID),
  list: (users) => Array.fromAsync(users.list()),
  listByIds: (users) => Array.fromAsync(users.list({ ids: [ID] })),
  listActive: (users) => Array.fromAsync(users.list({ is_active: true })),
  head: (users) => users.head(),
  changes: (users) => Array.fromAsync(users.changes()),
  changesOf: (users) => Array.fromAsync(users.changesOf(ID)),
};

describe('a response that is not the service’s', () => {
  const foreign: readonly (readonly [string, RawResponse])[] = [
    ['302', answer(302, '', { location: 'https://elsewhere.example.com/' })],
    ['200 with HTML', html(200)],
    ['200 with HTML as JSON', answer(200, '<h1>Sign in</h1>')],
    ['200 with another object', tagged(200, { message: 'hello' })],
    ['200 without content', tagged(200, '')],
    ['200 with null', tagged(200, 'null')],
    ['200 with a list of texts', tagged(200, ['hello'])],
    ['200 with half a list', tagged(200, '[{"id":')],
    ['200 with a user without members', tagged(200, [{ id: ID }])],
    ['200 with JSON as text', answer(200, [user()], { 'content-type': 'text/plain' })],
    ['202', tagged(202, user())],
    ['304 that was not asked for', tagged(304, '')],
    ['403 with JSON of another shape', answer(403, { message: { text: 'blocked' } })],
    ['404 with HTML', html(404)],
    ['404 with JSON', answer(404, { message: 'no route' })],
    ['404 with another problem', notFound({ ...PROBLEM, type: 'about:blank' })],
    ['404 with the problem of another path', notFound({ ...PROBLEM, instance: '/users' })],
    ['404 with a problem of 410', notFound({ ...PROBLEM, status: 410 })],
    ['404 with a problem without members', notFound({})],
    ['412 with HTML', html(412)],
    ['502 with HTML', html(502)],
    ['503 with JSON', answer(503, { message: 'busy' })],
    ['429 without content', answer(429, '')],
  ];

  test.each(foreign)('%s is an UnexpectedAnswer of every method', async (_, response) => {
    for (const [name, call] of Object.entries(CALLS)) {
      const error = await reasonFor(call(usersBehind(response)));
      expect(error, name).toBeInstanceOf(UnexpectedAnswer);
      expect(error, name).toMatchObject({ status: response.status });
      expect(error.message, name).not.toMatch(/\[object Object\]|undefined/);
    }
  });

  test.each([
    ['get', tagged(200, user({ id: OTHER }))],
    ['get', answer(200, user())],
    ['get', tagged(200, user({ id: 'me' }))],
    ['get', tagged(200, user({ created_at: 'yesterday' }))],
    ['get', tagged(200, user({ is_active: 1 }))],
    ['get', tagged(201, user())],
    ['change', tagged(200, user({ id: OTHER }))],
    ['create', tagged(200, user())],
    ['create', answer(201, user())],
    ['createAll', answer(201, [])],
    ['createAll', answer(200, [{ status: 201, user: user() }])],
    ['createSome', answer(200, [])],
    ['createSome', answer(201, [user()])],
    ['createSome', answer(200, [{ status: 201 }])],
    ['createSome', answer(200, [{ status: 409, user: user() }])],
    ['findByEmail', answer(200, [user({ email: 'other@example.com' })])],
    ['findByExternalId', answer(200, [user()])],
    ['list', answer(200, [user({ id: OTHER }), user()])],
    ['list', answer(200, [user()], { link: '</api/v1/users/?cursor=a>; rel="next"' })],
    ['list', answer(200, [user()], { link: '</api/v1/users/?limit=1>; rel="next"' })],
    ['list', answer(200, Array(101).fill(user()))],
    ['listByIds', answer(200, [user({ id: OTHER })])],
    ['listActive', answer(200, [user({ is_active: false })])],
    ['head', answer(200, [])],
    ['head', answer(200, [], { link: '</api/v1/users/changes>; rel="next"' })],
    ['head', answer(200, [], { link: '</api/v1/users/changes?cursor=>; rel="next"' })],
    ['changes', answer(200, [change()], AFTER_IT)],
    [
      'changesOf',
      answer(200, [change({ subject: OTHER })], {
        link: `</api/v1/users/${ID}/changes?cursor=abc>; rel=next`,
      }),
    ],
  ] as const)('of %s: %j is an UnexpectedAnswer', async (name, response) => {
    const call = CALLS[name] as (users: Users) => Promise<unknown>;

    expect(await reasonFor(call(usersBehind(response)))).toBeInstanceOf(UnexpectedAnswer);
  });

  test('is shown with its content type and 200 characters, without the token in any form', async () => {
    const echoes = [TOKEN, btoa(`Bearer ${TOKEN}`), encodeURIComponent(TOKEN), TOKEN.slice(3, -5)];
    const page = html(200, `\u001b[31mSign in ${echoes.join(' ')} ${'x'.repeat(300)}`);
    const { message } = await reasonFor(usersBehind(page).get(ID));

    expect(message).toMatch(
      /^200: not a content type of this operation \(text\/html\): \[31mSign in … \S* ?… … xxx/,
    );
    expect(message.length).toBeLessThan(260);
    for (const part of ['of-the-token', 'aGVhZGVy', 'signature']) expect(message).not.toContain(part);
  });

  test('a later version may have further members and values', async () => {
    const merged = change({ type: 'user.merged', data: { ...change().data, changed: ['phone'] } });
    const users = usersBehind(answer(200, [merged], AFTER_IT));

    expect(await users.get(ID).catch((error) => error)).toBeInstanceOf(UnexpectedAnswer);
    expect((await users.changes().next()).value).toMatchObject({ data: { changed: ['phone'] } });
    expect(await usersBehind(tagged(200, user({ phone: '1' }))).get(ID)).toMatchObject({ phone: '1' });
  });
});

describe('a value that is missing or of another type', () => {
  const texts = ['', '.', '..', 'changes', 'batch'];
  const values = [...texts, undefined, null, Number.NaN, 17, {}, [], [ID], true, new Date(0)];
  const filters = ['email', 'external_id', 'is_active', 'ids', 'created_after', 'sort', 'limit', 'cursor'];
  const calls: Readonly<Record<string, (users: Users, value: never) => Promise<unknown>>> = {
    get: (users, value) => users.get(value),
    find: (users, value) => users.find(value),
    change: (users, value) => users.change(value, {}),
    update: (users, value) => users.update(value, () => ({})),
    remove: (users, value) => users.remove(value),
    changesOf: (users, value) => Array.fromAsync(users.changesOf(value)),
    findByEmail: (users, value) => users.findByEmail(value),
    api: (users, value) => users.api.GET('/api/v1/users/{user_id}', { params: { path: { user_id: value } } }),
  };

  const expectTypeError = async (call: (users: Users) => Promise<unknown>) => {
    expect(await reasonFor(call(usersBehind(html(200))))).toBeInstanceOf(TypeError);
    expect(requests).toEqual([]);
  };

  test.each(Object.entries(calls))('of %s is refused before anything is sent', async (_, call) => {
    for (const value of values) await expectTypeError((users) => call(users, value as never));
  });

  test.each<{ name: string; value: unknown }>([
    ...['\n', 17, [], true].map((value) => ({ name: 'external_id', value })),
    ...filters.flatMap((name) => [undefined, null, '', Number.NaN, {}].map((value) => ({ name, value }))),
    ...[['x'], Array(1), Array(101).fill(ID), ID].map((value) => ({ name: 'ids', value })),
    ...['10', 0, 1001, 1.5].map((value) => ({ name: 'limit', value })),
    { name: 'is_active', value: 'true' },
    { name: 'sort', value: 'email' },
    { name: 'emial', value: 'a@b' },
  ])('the filter $name: $value is refused before anything is sent', ({ name, value }) =>
    expectTypeError((users) => Array.fromAsync(users.list({ [name]: value }))),
  );

  test.each<[string, (users: Users) => Promise<unknown>]>([
    ['findByExternalId', (users) => users.findByExternalId(undefined as never)],
    ['the number as a filter', (users) => Array.fromAsync(users.list(17 as never))],
    ['the Map as a filter', (users) => Array.fromAsync(users.list(new Map() as never))],
    ['the list as a filter', (users) => Array.fromAsync(users.list([] as never))],
    ['the text as a filter', (users) => Array.fromAsync(users.list(ID as never))],
    ['a cursor', (users) => Array.fromAsync(users.changes({ from: undefined as never }))],
    ['an empty cursor', (users) => Array.fromAsync(users.changes({ from: '' }))],
    ['an actor', (users) => Array.fromAsync(users.changes({ excludeActor: null as never }))],
    ['a key', (users) => users.create({ email: 'a@b' }, { key: undefined as never })],
    ['an empty key', (users) => users.createAll([{ email: 'a@b' }], { key: '' })],
    ['a version', (users) => users.change(ID, {}, { ifVersion: undefined as never })],
    ['an empty version', (users) => users.remove(ID, { ifVersion: '' })],
    ['a number in a change', (users) => users.change(ID, { full_name: Number.NaN as never })],
    ['a token', () => createUsers({ url: gateway.url, token: () => undefined as never }).get(ID)],
  ])('%s that is missing is refused before anything is sent', (_, call) => expectTypeError(call));

  test.each([0, 21, 1.5, '15', null])('a wait of %s s is refused before anything is sent', (wait) =>
    expectTypeError((users) => Array.fromAsync(users.changes({ wait: wait as never }))),
  );

  test('an empty list of ids is an empty result without a request', async () => {
    expect(await Array.fromAsync(usersBehind(html(200)).list({ ids: [] }))).toEqual([]);
    expect(requests).toEqual([]);
  });
});

describe('a Link', () => {
  test.each([
    ['<a>; rel="next"', 'a'],
    ['<a>; title="x, y; z"; rel=next', 'a'],
    ['<a>; title="a \\"quoted\\" <b>; rel=prev" ; rel = "prev  Next"', 'a'],
    ['<a>; rel=prev, <b>; rel=next', 'b'],
    [', ,<a>; rel=prev;,<b>;; rel=next', 'b'],
    ['<a,b;c>; rel=next', 'a,b;c'],
    ['<a>; rel=prev; rel=next', undefined],
    ['<a>; rel=nextpage, <b>; rel="x-next"', undefined],
    ['<a>; anchor="/other"; rel=next', undefined],
    ['<a>; title="; rel=next"', undefined],
    ['<a>', undefined],
    ['', undefined],
  ])('%j leads to %j', (header, target) => {
    expect(findLink(header, 'next')).toBe(target);
  });

  const PATH = '/api/v1/users/changes';
  test.each([
    ...['?cursor=b', './changes?cursor=b#part', `x${PATH}?cursor=b`, `${PATH}/?cursor=b`, '//other?cursor=b'],
    ...[`//other${PATH}?cursor=b`, `http://other:1/x${PATH}?cursor=b`],
  ])('to %s leads to the next page', async (reference) => {
    const users = usersBehind(pageTo(reference), { url: `${gateway.url}/base/` });

    expect((await users.changePages({ from: 'a' }).next()).value?.cursor).toBe('b');
    expect(requests[0]?.target).toMatch(/^\/base\/api\/v1\/users\/changes\?/);
  });

  test.each([...['/other?cursor=b', '/api/v1/users/?cursor=b', 'urn:x?cursor=b', 'http://[?cursor=b', PATH]])(
    'to %s is an UnexpectedAnswer',
    async (reference) => {
      expect(await reasonFor(usersBehind(pageTo(reference)).changePages().next())).toBeInstanceOf(
        UnexpectedAnswer,
      );
    },
  );
});

describe('an option', () => {
  const times = [-1, 2_147_483_648, Number.NaN, Number.POSITIVE_INFINITY, '5', null];
  const retries = [
    ...['pause', 'longestPause', 'timeout'].flatMap((name) => times.map((time) => ({ [name]: time }))),
    ...[0, -1, 1.5, Number.NaN, '3', null].map((attempts) => ({ attempts })),
    ...[null, 5, []],
  ];
  const urls = ['', '/relative', 'ftp://a', 'https://name:word@a.example', 'https://a?a=b', undefined];
  test.each<object>([
    ...retries.map((retry) => ({ retry })),
    ...urls.map((url) => ({ url })),
    ...[{ token: 'word' }, { fetch: null }],
  ])('%j that cannot work is refused when the client is made, without its value', (options) => {
    expect(() => usersBehind(html(200), options)).toThrow(/^[a-zA-Z]+ must (?!.*(word|example))/);
  });

  test.each([{ pause: 0, longestPause: 0, timeout: 2_147_483_647 }, { attempts: Number.POSITIVE_INFINITY }])(
    'retry: %j is accepted',
    async (retry) => expect(await usersBehind(pageTo('?cursor=b'), { retry }).head()).toBe('b'),
  );
});

test('a time limit and a signal end the wait for a token, and a request for a token ends after 15 s', async () => {
  const limited = usersBehind(html(200), { token: never, retry: { attempts: 2, pause: 1, timeout: 50 } });
  const signal = AbortSignal.timeout(50);
  const left = usersBehind(html(200), { token: never });
  const reasons = [await reasonFor(limited.head()), await reasonFor(left.head({ signal }))];
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const source = clientCredentials({ url: gateway.url, clientId: 'c', fetch: never });
  const reason = reasonFor(Promise.resolve(source()));
  await vi.advanceTimersByTimeAsync(15_000);

  expect([...reasons, await reason]).toMatchObject(Array(3).fill({ name: 'TimeoutError' }));
});

test.each([
  [64, '[]', () => usersBehind(respond).head(), 'abc'],
  [1, '{"access_token":"t"}', async () => clientCredentials({ url: gateway.url, clientId: 'c' })(), 't'],
] as const)('a response of %i MiB (%s) is accepted, and a larger one is refused once', async (...row) => {
  const [mib, content, call, result] = row;
  let more = 0;
  respond = () => answer(200, ' '.repeat(mib * 2 ** 20 - content.length + more++) + content, AFTER_IT);

  expect(await call()).toBe(result);
  expect((await reasonFor(call())).message).toBe(`200: the response is larger than ${mib} MiB`);
  expect(more).toBe(2);
});

/** A service with this number of users, whose gateway drops every Link. */
function withoutLinks(count: number) {
  const all = Array.from({ length: count }, (_, n) =>
    user({ id: `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`, email: `${n}@example.com` }),
  );
  return ({ target }: RawRequest) => {
    const query = new URLSearchParams(target.split('?')[1]);
    const limit = Number(query.get('limit') ?? 100);
    if (target.includes('/changes'))
      return answer(200, [], { link: '</api/v1/users/changes?cursor=abc>; rel="next"' });
    return answer(200, (query.get('sort') === '-created_at' ? all.toReversed() : all).slice(0, limit));
  };
}

describe('a full page without a link', () => {
  test('is the last one if no user comes after it, in both orders', async () => {
    const users = usersBehind(withoutLinks(20));

    expect(await Array.fromAsync(users.list({ limit: 20 }))).toHaveLength(20);
    expect(requests.map(({ target }) => target.split('?')[1])).toEqual([
      'limit=20',
      'limit=1&sort=-created_at',
    ]);
    expect(await Array.fromAsync(users.list({ limit: 21, sort: '-created_at' }))).toHaveLength(20);
  });

  test('is an UnexpectedAnswer if a user comes after it', async () => {
    const users = usersBehind(withoutLinks(21));

    expect(await reasonFor(Array.fromAsync(users.list({ limit: 20 })))).toBeInstanceOf(UnexpectedAnswer);
    expect(requests).toHaveLength(3);
  });

  test('is read again if a user is new, and its link is followed', async () => {
    const later = user({ id: OTHER });
    const link = `</api/v1/users/?cursor=${'c'.repeat(56)}>; rel="next"`;
    const pages = [answer(200, [user()]), answer(200, [later]), answer(200, [user()], { link })];
    const users = usersBehind(() => pages[requests.length - 1] ?? answer(200, [later]));

    expect(await Array.fromAsync(users.list({ limit: 1 }))).toEqual([user(), later]);
    expect(requests[3]?.target).toContain('cursor=ccc');
  });

  test('removes nothing from a copy, and neither does an empty list', async () => {
    const { copy, rows } = copyInMemory({ users: [user({ id: OTHER })] });
    const cut = mirror(usersBehind(withoutLinks(1001)), copy, { follow: false });
    expect(await reasonFor(cut)).toBeInstanceOf(UnexpectedAnswer);
    const empty = mirror(usersBehind(withoutLinks(0)), copy, { follow: false });
    expect((await reasonFor(empty)).message).toMatch(/^The service has no users, and the copy has some/);
    expect(rows.has(OTHER)).toBe(true);
    await mirror(usersBehind(withoutLinks(0)), copy, { follow: false, allowEmpty: true });
    expect(rows.size).toBe(0);
  });
});

test.each([
  ['user.updated', [], [ID, OTHER]],
  ['user.deleted', [OTHER], [OTHER]],
])('%s of two users, of which a list has %j, leaves %j in a copy', async (type, listed, left) => {
  const usersOf = (ids: readonly string[]) => ids.map((id) => user({ id }));
  const { copy, rows } = copyInMemory({ cursor: 'abc', users: usersOf([ID, OTHER]) });
  const users = usersBehind(({ target }) => {
    if (!target.includes('/changes')) return answer(200, usersOf(listed));
    const subjects = target.includes('cursor=abc') ? [ID, OTHER] : [];
    const changes = subjects.map((subject) => change({ subject, type }));
    return answer(200, changes, { link: '</api/v1/users/changes?cursor=def>; rel="next"' });
  });
  await mirror(users, copy, { follow: false });

  expect([...rows.keys()]).toEqual(left);
});

test('every page of a list has its filters', async () => {
  const link = `</api/v1/users/?cursor=${'c'.repeat(56)}>; rel="next"`;
  const users = usersBehind(({ target }) =>
    target.includes('cursor=') ? answer(200, []) : answer(200, [user()], { link }),
  );
  await Array.fromAsync(users.list({ is_active: true }));

  expect(requests.map(({ target }) => target.includes('is_active=true'))).toEqual([true, true]);
});

test('an empty page of changes is not their end, and every page leaves out the same actor', async () => {
  const pages = [[], [change()], []];
  const users = usersBehind(() => {
    const cursor = `cursor-${Math.min(requests.length, 2)}`;
    const link = `</api/v1/users/changes?cursor=${cursor}>; rel="next"`;
    return answer(200, pages[requests.length - 1], { link });
  });

  expect(await Array.fromAsync(users.changes({ excludeActor: 'me' }))).toEqual([change()]);
  expect(requests.map(({ target }) => target)).toEqual(
    ['', '&cursor=cursor-1', '&cursor=cursor-2'].map(
      (cursor) => `/api/v1/users/changes?limit=1000&exclude_actor=me${cursor}`,
    ),
  );
});

test('a reader that follows the changes lets the service wait for 15 s, or as long as it says', async () => {
  const users = usersBehind(answer(200, [change()], AFTER_IT));
  await users.changes({ follow: true }).next();
  await users.changes({ follow: true, wait: 20 }).next();

  expect(requests.map(({ target }) => target.split('&')[1])).toEqual(['wait=15', 'wait=20']);
});

test('users follow --wait 1 lets the service wait for 1 s, and every request names the command', async () => {
  usersBehind(({ target }) => (target === '/token' ? answer(200, { access_token: TOKEN }) : EXPIRED));
  const given = { USERS_TOKEN_URL: `${gateway.url}/token`, USERS_CLIENT_ID: 'a', USERS_CLIENT_SECRET: 'b' };
  const words = ['follow', '--wait', '1', '--cursor', files.write('waiting', 'abc\n')];
  const { code } = await runCommand(words, { USERS_URL: gateway.url, ...given });
  const agent = expect.stringMatching(/^user-management-service-client\/\d+\.\d+\.\d+/);

  expect(code).toBe(4);
  expect(requests.map(({ target, fields }) => [target, new Map(fields).get('user-agent')])).toEqual([
    ['/token', agent],
    ['/api/v1/users/changes?limit=1000&wait=1&cursor=abc', agent],
  ]);
});

test.each([
  ...[502, 503, 504].map((status) => [status, html(status), 600, 'a', 'a', 1] as const),
  [504, html(504), 0, 'a', 'b', 2],
  [503, answer(503, {}, { 'content-type': 'application/problem+json' }), 600, 'a', 'b', 2],
  [500, html(500), 600, 'a', undefined, 1],
  // Without a cursor, the page cannot have one. A second wait from `now` would skip changes.
  [504, html(504), 600, undefined, 'b', 2],
  [504, html(504), 600, 'now', 'b', 2],
] as const)(
  'a %i (%j) after %i ms of a wait of 1 s from %s leads to the cursor %s by %i requests',
  async (_, response, delay, from, cursor, count) => {
    const users = usersBehind(async () => {
      if (requests.length > 1) return pageTo('?cursor=b');
      await sleep(delay);
      return response;
    });
    const page = users.changePages({ ...(from && { from }), follow: true, wait: 1 }).next();

    expect((await page.catch(() => undefined))?.value?.cursor).toBe(cursor);
    expect(requests).toHaveLength(count);
  },
);

test.each([true, false])(
  'a service that does not wait is asked with growing pauses (by an iterator for each page: %s)',
  async (isNew) => {
    const users = usersBehind(pageTo('?cursor=a'));
    const options = { from: 'a', follow: true, signal: AbortSignal.timeout(1_500) };
    let pages = users.changePages(options);
    while (await pages.next().catch(() => false)) if (isNew) pages = users.changePages(options);

    expect(requests.length).toBeGreaterThanOrEqual(3);
    expect(requests.length).toBeLessThanOrEqual(6);
  },
);

test.each(['cursor', 'ids', 'put', 'remove', 'keep', 1, 2, 3, 4])(
  'a mirror that is aborted in the phase %s ends without an error, and does nothing more',
  async (phase) => {
    const leaving = new AbortController();
    const done: (string | number)[] = [];
    const reach = (step: string | number) => {
      done.push(step);
      if (step === phase) leaving.abort(new Error('left'));
    };
    const [cursor, put, remove, keep] = ['cursor', 'put', 'remove', 'keep'].map((name) => () => reach(name));
    const ids = () => [OTHER].filter(() => reach('ids') ?? true);
    const copy = { cursor, put, remove, keep, ids } as unknown as Mirror;
    const users = usersBehind(({ target }) => {
      reach(requests.length);
      if (requests.length === phase) return never();
      if (!target.includes('/changes')) return answer(200, [user()]);
      return target.includes('=now') ? pageTo('?cursor=a') : pageTo('?cursor=b', [change()]);
    });
    await mirror(users, copy, { signal: leaving.signal });

    expect(done.at(-1)).toBe(phase);
  },
);

test('a mirror whose changes expire again and again reads the list with pauses', async () => {
  const users = usersBehind(({ target }) => {
    if (!target.includes('/changes')) return answer(200, [user()]);
    return target.includes('=now') ? pageTo('?cursor=b') : EXPIRED;
  });
  await mirror(users, copyInMemory().copy, { signal: AbortSignal.timeout(1_000) });

  expect(requests).toHaveLength(6);
});

test.each(['"1-gzip"', 'W/"1;br"'])('the version of the entity tag %s is "1"', async (etag) => {
  const users = usersBehind(tagged(200, user(), { etag }));
  await users.update(ID, () => ({ full_name: 'Ada' }));
  await users.change(ID, {}, { ifVersion: etag });
  const sent = requests.map(({ fields }) => fields.find(([name]) => name.toLowerCase() === 'if-match')?.[1]);

  expect(sent).toEqual([undefined, '"1"', '"1"']);
});

test.each<[string, typeof respond | RawResponse]>([
  ['a redirect', answer(302, '', { location: 'https://elsewhere.example.com/?key=out-of-the-token' })],
  ['a page', html(200, `<h1>${TOKEN}</h1>`)],
  ['a page for everything that is not found', html(404)],
  // A list without users may be right, but not the changes.
  ['empty lists without a link', ({ target }) => (target.includes('/users/?') ? html(200) : answer(200, []))],
])('every command ends with 1 behind %s, and files stay', async (_, answers) => {
  usersBehind(answers);
  const variables = { USERS_URL: gateway.url, USERS_TOKEN: TOKEN };
  const [cursor, out, list] = ['cursor', 'out', 'list'].map((name) =>
    files.write(name, `{"email":"a@b.c"}\n`),
  );
  for (const args of [
    ['import', list],
    ['export', '--out', out, '--cursor', cursor],
    ['follow', '--once', '--cursor', files.write('position', 'abc\n')],
    ['diff', list],
    ['get', ID],
    ['get', 'a@b.c'],
    ['changes', ID],
  ]) {
    requests = [];
    const { code, stdout, stderr } = await runCommand(args as string[], variables);
    expect([args[0], code, stdout], stderr).toEqual([args[0], 1, '']);
    expect(stderr).toMatch(/^unexpected response \d+: (?!.*of-the-token)/s);
    expect(requests.length).toBeLessThan(3);
  }

  expect([files.read('position'), files.read('out')]).toEqual(['abc\n', `{"email":"a@b.c"}\n`]);
  expect(files.read('cursor')).toBe(files.read('out'));
});

test('a line that a gateway refuses as too long is refused', async () => {
  usersBehind(html(413));
  const file = files.write('long', '{"email":"a@b.c"}\n');
  const variables = { USERS_URL: gateway.url, USERS_TOKEN: TOKEN };
  const { code, stderr } = await runCommand(['import', file], variables);

  expect([code, lastLine(stderr)]).toEqual([3, 'created 0, exists 0, refused 1']);
  expect(stderr).toContain('"status":413');
});

test.each([
  ['nginx', 'gzip off;', 'gzip on; gzip_proxied any; gzip_types *; gzip_min_length 0;'],
  ['haproxy', '  mode http', '  mode http\n  compression algo gzip\n  compression type application/json'],
] as const)(
  'behind %s, which compresses responses, every method works',
  async (program, plain, compressing) => {
    const service = await forThisTest(startAcceptable);
    const { port } = new URL(service.url);
    const front = await forThisTest(startBalancer, program, [port, port], [plain, compressing]);
    const encodings: (string | null)[] = [];
    const users = createUsers({
      url: front.url,
      token: clientCredentials({ url: service.credentials.ACCEPT_TOKEN_URL, clientId: 'client' }),
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        encodings.push(response.headers.get('content-encoding'));
        return response;
      },
    });
    const cursor = await users.head();
    const { id, version } = await users.create({ email: 'proxied@example.com', full_name: 'x'.repeat(200) });
    const updated = await users.update(id, () => ({ full_name: 'Ada' }));
    const listed = await Array.fromAsync(users.list({ limit: 2 }));
    const changes = await Array.fromAsync(users.changes({ from: cursor }));
    await users.remove(id, { ifVersion: updated.version });
    const removed = await users.find(id);

    expect(encodings).toContain('gzip');
    expect([version, updated.version, removed]).toEqual(['"1"', '"2"', undefined]);
    expect(listed).toHaveLength(4);
    expect(changes.map(({ subject }) => subject)).toEqual([id, id]);
  },
);
