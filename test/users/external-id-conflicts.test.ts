import { describe, expect, test } from 'vitest';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { BATCH, freshAddress, invalid, refusal, success, USERS, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const service = serviceUnderTest();
const { call, createUser } = service;
const post = postingUnderKeys(call);

const SOME = 'Some values already belong to another user. See errors.';
const EMAIL = 'A user with this email already exists.';
const EMAILS = 'Some emails of the batch are already taken. See errors.';

const freshId = () => `hr-${crypto.randomUUID()}`;
const fresh = () => ({ email: freshAddress(), external_id: freshId() });
const created = async (external_id = freshId()) => ({ ...(await createUser({ external_id })), external_id });
const conflict = (path: string, ...names: string[]) =>
  refusal('conflict_error', path, { detail: SOME, errors: names });
const emailConflict = (path: string) => refusal('conflict_error', path, { detail: EMAIL });

type Send = (path: string, body: object) => ReturnType<typeof call>;

const ways: [title: string, Send][] = [
  ['without a key', (path, body) => call('POST', path, body)],
  ['under a key', (path, body) => post(path, freshKey(), body)],
];

describe.each(ways)('a create %s is 409', (_, send) => {
  const create = (body: object) => send(USERS, { email: freshAddress(), ...body });

  test('that names the external id, after the email if that is taken, too', async () => {
    const { email, external_id } = await created();

    expect(await create({ external_id })).toEqual(conflict(USERS, '#/external_id'));
    expect(await create({ email: email.toUpperCase(), external_id })).toEqual(
      conflict(USERS, '#/email', '#/external_id'),
    );
  });

  test('that names nothing if only the email is taken', async () => {
    const { email } = await created();

    for (const values of [{}, { external_id: null }, { external_id: freshId() }])
      expect(await create({ email, ...values })).toEqual(emailConflict(USERS));
  });

  test('only for exactly the same value', async () => {
    const { external_id } = await created(`${freshId()}é`);

    for (const other of [external_id.toUpperCase(), `${external_id} `, external_id.normalize('NFD')])
      expect((await create({ external_id: other })).status).toBe(201);
    expect(await create({ external_id })).toEqual(conflict(USERS, '#/external_id'));
  });

  test('only if a conflict still exists after the refused write, and otherwise 201', async () => {
    const external_id = freshId();
    const writer = await hold(
      service.database,
      `INSERT INTO users (id, email, external_id) VALUES (gen_random_uuid(), '${freshAddress()}', '${external_id}')`,
    );
    const creating = create({ external_id });
    await untilUnderWay(1, service.database);
    await writer.release();

    expect((await creating).status).toBe(201);
  });
});

test('of many concurrent creates with the same external id, all but one are 409', async () => {
  const external_id = freshId();
  const create = () => call('POST', USERS, { email: freshAddress(), external_id });
  const responses = await times(40, create);
  const refused = responses.filter(({ status }) => status !== 201);

  expect(refused).toEqual(Array(39).fill(conflict(USERS, '#/external_id')));
});

describe('an update is 409', () => {
  test('that names the external id, after the email if that is taken, too', async () => {
    const { email, external_id } = await created();
    const path = USERS + (await created()).id;

    expect(await call('PATCH', path, { external_id })).toEqual(conflict(path, '#/external_id'));
    expect(await call('PATCH', path, { external_id, email })).toEqual(
      conflict(path, '#/email', '#/external_id'),
    );
    for (const values of [{}, { external_id: null }, { external_id: freshId() }])
      expect(await call('PATCH', path, { email, ...values })).toEqual(emailConflict(path));
  });

  test("but not for the user's own value", async () => {
    const [{ id, email, external_id }, other] = [await created(), await created()];
    const path = USERS + id;

    expect((await call('PATCH', path, { email, external_id })).status).toBe(200);
    expect(await call('PATCH', path, { external_id, email: other.email })).toEqual(emailConflict(path));
    expect(await call('PATCH', path, { external_id: other.external_id, email })).toEqual(
      conflict(path, '#/external_id'),
    );
  });

  test('only after 412 and 404', async () => {
    const [{ external_id }, { id }] = [await created(), await created()];
    const unknown = `${USERS}${crypto.randomUUID()}`;
    const headers = { 'if-match': '"9"' };

    expect((await call('PATCH', USERS + id, { external_id }, { headers })).status).toBe(412);
    expect((await call('PATCH', unknown, { external_id })).status).toBe(404);
  });

  test('until the other user has another value or is deleted', async () => {
    const [other, { id }] = [await created(), await created()];
    const { external_id } = other;
    await call('PATCH', USERS + other.id, { external_id: null });
    expect((await call('PATCH', USERS + id, { external_id })).status).toBe(200);
    await call('DELETE', USERS + id);
    expect((await call('PATCH', USERS + other.id, { external_id })).status).toBe(200);
  });
});

describe('an atomic batch', () => {
  test.each(ways)('is 409 and names every taken email and external id, in order, %s', async (_, send) => {
    const [one, two] = [await created(), await created()];
    const items = [
      { email: freshAddress(), external_id: one.external_id },
      fresh(),
      { email: one.email, external_id: two.external_id },
      { email: two.email },
    ];
    const places = ['0/external_id', '2/email', '2/external_id', '3/email'];

    expect(await send(BATCH, { items })).toEqual(
      conflict(BATCH, ...places.map((place) => `#/items/${place}`)),
    );
    expect(await call('POST', BATCH, { items: items.slice(3) })).toEqual(
      refusal('conflict_error', BATCH, { detail: EMAILS, errors: ['#/items/0/email'] }),
    );
  });

  test('is 422 for an external id that occurs earlier in the same batch, compared exactly', async () => {
    const [one, two] = [fresh(), fresh()];
    const items = [
      one,
      { email: freshAddress(), external_id: one.external_id.toUpperCase() },
      { ...one, email: freshAddress() },
      two,
      { email: one.email.toUpperCase(), external_id: two.external_id },
      { email: freshAddress(), external_id: null },
      { email: freshAddress(), external_id: null },
    ];

    expect(await call('POST', BATCH, { items })).toEqual(
      invalid(BATCH, '#/items/2/external_id', '#/items/4/email', '#/items/4/external_id'),
    );
  });

  test('is 422 also for an external id of a refused item, and names the external id of an item last', async () => {
    const { email, external_id } = fresh();
    const items = [
      { email: 'none', external_id },
      { email, external_id },
      { email, external_id: '' },
    ];

    const errors = ['#/items/0/email', '#/items/1/external_id', '#/items/2/email', '#/items/2/external_id'];

    expect(await call('POST', BATCH, { items })).toEqual(invalid(BATCH, ...errors));
  });
});

describe('a partial batch', () => {
  type Result = { status: number; problem?: { detail: string; errors: { pointer: string }[] } };
  const shown = ({ status, problem }: Result) =>
    problem
      ? [status, problem.detail, ...problem.errors.map(({ pointer }) => pointer.slice('#/items/'.length))]
      : [status];
  const resultsOf = async (send: Send, items: readonly object[]) => {
    const response = await send(BATCH, { items, mode: 'partial' });
    expect(response.status).toBe(200);
    return (response.body as Result[]).map(shown);
  };

  test.each(ways)(
    'decides items in their order: one conflicts with a later one only if it is stored, %s',
    async (_, send) => {
      const known = await created();
      const [a, b, c] = [freshAddress(), freshAddress(), freshAddress()];
      const [x, y] = [freshId(), freshId()];
      const items = [
        { email: a, external_id: known.external_id },
        { email: a, external_id: x },
        { email: a.toUpperCase(), external_id: y },
        { email: b, external_id: y },
        { email: b, external_id: x },
        { email: c, external_id: x },
        { email: c },
        { email: 'none', external_id: 'z' },
        { email: known.email, external_id: 'z' },
      ];

      expect(await resultsOf(send, items)).toEqual([
        [409, SOME, '0/external_id'],
        [201],
        [409, EMAILS, '2/email'],
        [201],
        [409, SOME, '4/email', '4/external_id'],
        [409, SOME, '5/external_id'],
        [201],
        [422, 'Some values are not valid. See errors.', '7/email'],
        [409, EMAILS, '8/email'],
      ]);
    },
  );

  test('that is repeated has both pointers in a 409 item whenever the item has an external id', async () => {
    const { email, external_id } = await created();
    const key = freshKey();
    const repeat: Send = (path, body) => post(path, key, body);
    const items = [
      { email, external_id: freshId() },
      { email: freshAddress(), external_id },
      { email },
      fresh(),
    ];
    const first = [[409, EMAILS, '0/email'], [409, SOME, '1/external_id'], [409, EMAILS, '2/email'], [201]];

    expect(await resultsOf(repeat, items)).toEqual(first);
    expect(await resultsOf(repeat, items)).toEqual([
      [409, SOME, '0/email', '0/external_id'],
      [409, SOME, '1/email', '1/external_id'],
      ...first.slice(2),
    ]);
  });

  test('stores 100 items with external ids', async () => {
    const items = Array.from({ length: 100 }, fresh);
    const response = await call('POST', BATCH, { items, mode: 'partial' });

    const results = items.map((item) => ({ status: 201, user: user(item) }));

    expect(response).toEqual(success(200, results));
  });
});

test('concurrent batches with the same external ids are stored or 409', async () => {
  const ids = Array.from({ length: 20 }, freshId);
  const send = (order: readonly string[], mode: string) =>
    call('POST', BATCH, {
      mode,
      items: order.map((external_id) => ({ email: freshAddress(), external_id })),
    });
  const orders = [ids, ids.toReversed(), ids, ids.toReversed()];
  const responses = await Promise.all(
    orders.flatMap((order) => [send(order, 'atomic'), send(order, 'partial')]),
  );
  const rows = await service.database.query('SELECT external_id FROM users');

  for (const { status } of responses) expect([200, 201, 409]).toContain(status);
  expect(rows.map(({ external_id }) => external_id)).toEqual(expect.arrayContaining(ids));
});
