import { describe, expect, test } from 'vitest';
import { freshKey, postingUnderKeys, REPLAYED } from '../stage/keyed.ts';
import { BATCH, freshAddress, invalid, refusal, success, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser } = service;
const post = postingUnderKeys(call);

const batch = (items: unknown, mode?: unknown) => call('POST', BATCH, { items, mode });
const emails = (count: number) => Array.from({ length: count }, () => ({ email: freshAddress() }));
const usersOf = (items: readonly { email: string; full_name?: string | null }[]) => items.map(user);

describe('an atomic batch', () => {
  test('is 201 with the users in the order of its items, independent of the order of the emails', async () => {
    const items = [{ email: `z.${freshAddress()}` }, { email: `a.${freshAddress()}`, full_name: 'Ada' }];
    const response = await batch(items);
    const [one, other] = response.body as UserBody[];

    expect(response).toEqual(success(201, usersOf(items)));
    expect(Number(one?.id.localeCompare(other?.id ?? ''))).toBe(-1);
    expect((await call('GET', `/api/v1/users/${one?.id}`)).body).toEqual(one);
  });

  test('has 1 to 100 items', async () => {
    const [largest, one] = [emails(100), emails(1)];

    expect(await batch(largest)).toEqual(success(201, usersOf(largest)));
    expect(await batch(one, 'atomic')).toEqual(success(201, usersOf(one)));
    expect(await batch(emails(101))).toEqual(invalid(BATCH, '#/items'));
    expect(await batch([])).toEqual(invalid(BATCH, '#/items'));
  });

  test('is stored by one statement, and logs one user_created per user', async () => {
    const response = await batch(emails(20));
    const ids = (response.body as UserBody[]).map(({ id }) => id);
    const [row] = await service.database.query(
      `SELECT count(DISTINCT (xmin::text, cmin::text))::int FROM users WHERE id IN ('${ids.join("','")}')`,
    );
    const events = await service.eventsOf(response);

    expect(row).toEqual({ count: 1 });
    expect(events.map(({ event, user_id, email, subject }) => [event, user_id, email, subject])).toEqual(
      ids.map((id) => ['user_created', id, 'u***@example.com', 'svc-test']),
    );
  });

  test('names all taken emails, and stores nothing', async () => {
    const [taken, other] = [await createUser(), await createUser()];
    const free = freshAddress();
    const items = [{ email: taken.email.toUpperCase() }, { email: free }, { email: other.email }];
    const errors = ['#/items/0/email', '#/items/2/email'];

    expect(await batch(items)).toEqual(refusal('conflict_error', BATCH, { errors }));
    expect(await batch([{ email: free }])).toMatchObject({ status: 201 });
  });

  test('names every email that repeats that of an earlier item, before the taken emails', async () => {
    const [one, other] = [freshAddress(), freshAddress()];
    const taken = (await createUser()).email;
    const addresses = [one, taken, `\u00e9${other}`, one.toUpperCase(), `\u00c9${other}`, one];
    const items = addresses.map((email) => ({ email }));
    const expected = invalid(BATCH, '#/items/3/email', '#/items/5/email');

    expect(await batch(items)).toEqual(expected);
    expect(await post(BATCH, freshKey(), { items })).toEqual(expected);
  });

  test('names all faults of its items', async () => {
    const email = freshAddress();
    const items = [
      { email },
      { full_name: 'Ada' },
      { email: 'none', full_name: 'x'.repeat(256) },
      null,
      'text',
      [],
      { email: email.toUpperCase() },
      { email: freshAddress(), full_name: 7 },
      { email: 'none' },
    ];
    const expected = invalid(
      BATCH,
      ...['#/items/1/email', '#/items/2/email', '#/items/2/full_name', '#/items/3', '#/items/4', '#/items/5'],
      ...['#/items/6/email', '#/items/7/full_name', '#/items/8/email'],
    );

    expect(await batch(items)).toEqual(expected);
    expect(await call('GET', `/api/v1/users/?email=${email}`)).toEqual(success(200, []));
  });

  test('ignores unknown members of the batch and of its items', async () => {
    const email = freshAddress();
    const items = [{ email, is_active: false, id: '1', role: 'admin' }];

    expect(await call('POST', BATCH, { items, dry_run: true })).toEqual(success(201, [user({ email })]));
  });

  test('has no ETag and no Location, and ignores If-Match and If-None-Match', async () => {
    const headers = { 'if-match': '"9"', 'if-none-match': '*' };
    const items = emails(1);

    expect(await call('POST', `${BATCH}/`, { items }, { headers })).toEqual(success(201, usersOf(items)));
  });
});

test.each([
  ['no items', {}, ['#/items']],
  ['items that are an object', { items: { 0: { email: 'a@b' } } }, ['#/items']],
  ['a mode in another case', { items: [{ email: 'a@b' }], mode: 'Partial' }, ['#/mode']],
  ['items and mode', { items: 7, mode: true }, ['#/items', '#/mode']],
  [
    'a mode that is none, with which items are judged as in atomic',
    { items: [{ email: 'none' }, { email: 'a@b' }, { email: 'A@b' }], mode: 'some' },
    ['#/mode', '#/items/0/email', '#/items/2/email'],
  ],
  ['null', null, ['#']],
])('an invalid member of the batch is one 422 for the whole request: %s', async (_case, body, errors) => {
  expect(await call('POST', BATCH, body)).toEqual(invalid(BATCH, ...errors));
});

describe('an atomic batch that is repeated under its key', () => {
  test('is 201 with the users as they are now and logs nothing, and 410 once one of them is deleted', async () => {
    const key = freshKey();
    const items = emails(3);
    const first = (await post(BATCH, key, { items })).body as UserBody[];
    const { body: changed } = await call('PATCH', `/api/v1/users/${first[1]?.id}`, { full_name: 'Ada' });

    const again = await post(BATCH, key, { items, mode: 'atomic' });
    expect(again).toEqual(success(201, [first[0], changed, first[2]], REPLAYED));
    expect(await service.eventsOf(again)).toEqual([]);
    await call('DELETE', `/api/v1/users/${first[2]?.id}`);
    expect(await post(BATCH, key, { items })).toEqual(refusal('gone_error', BATCH));
  });

  test('is the same request with other unknown members, but not with another mode, order or value', async () => {
    const key = freshKey();
    const items = emails(2);
    const [one, other] = items;
    await post(BATCH, key, { items });
    const same = items.map(({ email }) => ({ is_active: false, full_name: null, email }));
    const repeated = await post(BATCH, key, { items: same, other: 1 });
    expect(repeated).toMatchObject({ status: 201, headers: REPLAYED });

    for (const body of [
      { items, mode: 'partial' },
      { items: [other, one] },
      { items: [one] },
      { items: [one, { ...other, full_name: '' }] },
      { items: [one, { email: other?.email.toUpperCase() }] },
      { items: emails(2) },
    ]) {
      expect(await post(BATCH, key, body)).toEqual(refusal('idempotency_key_reused_error', BATCH));
    }
  });

  test('is 422 for invalid values before its key is looked up', async () => {
    const key = freshKey();
    const items = emails(1);
    await post(BATCH, key, { items });

    expect(await post(BATCH, key, { items: [] })).toEqual(invalid(BATCH, '#/items'));
    expect(await post(BATCH, key, { items: [...items, ...items] })).toEqual(
      invalid(BATCH, '#/items/1/email'),
    );
    const same = [{ email: 'ada@b' }, { email: 'ADA@b' }];
    expect(await post(BATCH, key, { items: same })).toEqual(invalid(BATCH, '#/items/1/email'));
  });
});
