import { describe, expect, test } from 'vitest';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { BATCH, freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;
const post = postingUnderKeys(call);

const SOME = 'Some values already belong to another user. See errors.';
const EMAIL = 'A user with this email already exists.';
const EMAILS = 'Some emails of the batch are already taken. See errors.';

const freshId = () => `hr-${crypto.randomUUID()}`;
const fresh = () => ({ email: freshAddress(), external_id: freshId() });
const created = async (body: object = fresh()) =>
  (await call('POST', USERS, { email: freshAddress(), ...body })).body as UserBody & { external_id: string };
const conflict = (path: string, ...names: string[]) =>
  refusal('conflict_error', path, { detail: SOME, errors: names });
const emailConflict = (path: string) => refusal('conflict_error', path, { detail: EMAIL });

describe('a create is 409', () => {
  const ways = [
    ['without a key', (body: object) => call('POST', USERS, body)],
    ['under a key', (body: object) => post(USERS, freshKey(), body)],
  ] as const;

  test.each(ways)(
    'that names the external id, after the email if that is taken, too, %s',
    async (_, create) => {
      const { email, external_id } = await created();

      expect(await create({ email: freshAddress(), external_id })).toEqual(conflict(USERS, '#/external_id'));
      expect(await create({ email: email.toUpperCase(), external_id })).toEqual(
        conflict(USERS, '#/email', '#/external_id'),
      );
    },
  );

  test.each(ways)('that names nothing if only the email is taken, %s', async (_, create) => {
    const { email } = await created();

    expect(await create({ email })).toEqual(emailConflict(USERS));
    expect(await create({ email, external_id: null })).toEqual(emailConflict(USERS));
    expect(await create({ email, external_id: freshId() })).toEqual(emailConflict(USERS));
  });

  test.each(ways)('only for exactly the same value, %s', async (_, create) => {
    const { external_id } = await created({ external_id: `${freshId()}é` });
    const others = [external_id.toUpperCase(), `${external_id} `, external_id.normalize('NFD')];

    for (const other of others)
      expect((await create({ email: freshAddress(), external_id: other })).status).toBe(201);
    expect(await create({ email: freshAddress(), external_id })).toEqual(conflict(USERS, '#/external_id'));
  });

  test.each(ways)(
    'only if a conflict still exists after the refused write, and otherwise 201, %s',
    async (_, create) => {
      const external_id = freshId();
      const writer = await hold(
        service.database,
        `INSERT INTO users (id, email, external_id) VALUES (gen_random_uuid(), '${freshAddress()}', '${external_id}')`,
      );
      const creating = create({ email: freshAddress(), external_id });
      await untilUnderWay(1, service.database);
      await writer.release();

      expect((await creating).status).toBe(201);
    },
  );

  test('for all but one of many concurrent creates with the same value', async () => {
    const external_id = freshId();
    const responses = await Promise.all(
      Array.from({ length: 40 }, () => call('POST', USERS, { email: freshAddress(), external_id })),
    );
    const refused = responses.filter(({ status }) => status !== 201);

    expect(refused).toEqual(Array(39).fill(conflict(USERS, '#/external_id')));
  });
});

describe('an update is 409', () => {
  test('that names the external id, after the email if that is taken, too', async () => {
    const [other, { id }] = [await created(), await created()];
    const { email, external_id } = other;

    expect(await call('PATCH', USERS + id, { external_id })).toEqual(conflict(USERS + id, '#/external_id'));
    expect(await call('PATCH', USERS + id, { external_id, email })).toEqual(
      conflict(USERS + id, '#/email', '#/external_id'),
    );
    expect(await call('PATCH', USERS + id, { email })).toEqual(emailConflict(USERS + id));
    expect(await call('PATCH', USERS + id, { email, external_id: null })).toEqual(emailConflict(USERS + id));
    expect(await call('PATCH', USERS + id, { email, external_id: freshId() })).toEqual(
      emailConflict(USERS + id),
    );
  });

  test("but not for the user's own value", async () => {
    const [{ email, external_id }, other] = [await created(), await created()];
    const [{ id }] = (await call('GET', `${USERS}?email=${email}`)).body as [UserBody];

    expect((await call('PATCH', USERS + id, { email, external_id })).status).toBe(200);
    expect(await call('PATCH', USERS + id, { external_id, email: other.email })).toEqual(
      emailConflict(USERS + id),
    );
    expect(await call('PATCH', USERS + id, { external_id: other.external_id, email })).toEqual(
      conflict(USERS + id, '#/external_id'),
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
  const errorsOf = (...places: [number, string][]) =>
    places.map(([index, name]) => `#/items/${index}/${name}`);

  test.each([undefined, 'key'])(
    'is 409 and names every taken email and external id, in order, %s',
    async (key) => {
      const [one, two] = [await created(), await created()];
      const items = [
        { email: freshAddress(), external_id: one.external_id },
        fresh(),
        { email: one.email, external_id: two.external_id },
        { email: two.email },
      ];
      const response = await (key ? post(BATCH, freshKey(), { items }) : call('POST', BATCH, { items }));

      expect(response).toEqual(
        conflict(BATCH, ...errorsOf([0, 'external_id'], [2, 'email'], [2, 'external_id'], [3, 'email'])),
      );
      expect(await call('POST', BATCH, { items: items.slice(3) })).toEqual(
        refusal('conflict_error', BATCH, { detail: EMAILS, errors: ['#/items/0/email'] }),
      );
    },
  );

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
      refusal('validation_error', BATCH, {
        errors: errorsOf([2, 'external_id'], [4, 'email'], [4, 'external_id']),
      }),
    );
  });

  test('is 422 also for an external id of a refused item, and names the external id of an item last', async () => {
    const { email, external_id } = fresh();
    const items = [
      { email: 'none', external_id },
      { email, external_id },
      { email, external_id: '' },
    ];

    expect(await call('POST', BATCH, { items })).toEqual(
      refusal('validation_error', BATCH, {
        errors: errorsOf([0, 'email'], [1, 'external_id'], [2, 'email'], [2, 'external_id']),
      }),
    );
  });
});

describe('a partial batch', () => {
  type Result = {
    status: number;
    user?: UserBody;
    problem?: { detail: string; errors: { pointer: string }[] };
  };
  const shown = ({ status, problem }: Result) =>
    problem
      ? [status, problem.detail, ...problem.errors.map(({ pointer }) => pointer.slice('#/items/'.length))]
      : [status];
  const resultsOf = async (items: readonly object[], key?: string) => {
    const body = { items, mode: 'partial' };
    const response = await (key ? post(BATCH, key, body) : call('POST', BATCH, body));
    expect(response.status).toBe(200);
    return (response.body as Result[]).map(shown);
  };

  test.each([undefined, 'key'])(
    'decides items in their order: one conflicts with a later one only if it is stored, %s',
    async (key) => {
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

      expect(await resultsOf(items, key && freshKey())).toEqual([
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
    const items = [
      { email, external_id: freshId() },
      { email: freshAddress(), external_id },
      { email },
      fresh(),
    ];
    const first = [[409, EMAILS, '0/email'], [409, SOME, '1/external_id'], [409, EMAILS, '2/email'], [201]];

    expect(await resultsOf(items, key)).toEqual(first);
    expect(await resultsOf(items, key)).toEqual([
      [409, SOME, '0/email', '0/external_id'],
      [409, SOME, '1/email', '1/external_id'],
      ...first.slice(2),
    ]);
  });

  test('stores 100 items with external ids', async () => {
    const items = Array.from({ length: 100 }, fresh);
    const response = await call('POST', BATCH, { items, mode: 'partial' });

    expect(response).toEqual(
      success(
        200,
        items.map((item) => ({ status: 201, user: user(item) })),
      ),
    );
  });
});

test('concurrent batches with the same external ids are stored or 409', async () => {
  const ids = Array.from({ length: 20 }, freshId);
  const batchOf = (order: readonly string[], mode: string) => ({
    mode,
    items: order.map((external_id) => ({ email: freshAddress(), external_id })),
  });
  const responses = await Promise.all(
    [ids, ids.toReversed(), ids, ids.toReversed()].flatMap((order) => [
      call('POST', BATCH, batchOf(order, 'atomic')),
      call('POST', BATCH, batchOf(order, 'partial')),
    ]),
  );
  const rows = await inDatabase(
    service.database,
    'SELECT external_id FROM users WHERE external_id IS NOT NULL',
  );

  for (const { status } of responses) expect([200, 201, 409]).toContain(status);
  expect(ids.filter((id) => !rows.some(({ external_id }) => external_id === id))).toEqual([]);
});
