import { describe, expect, test } from 'vitest';
import { freshKey, postingUnderKeys, REPLAYED } from '../stage/keyed.ts';
import { BATCH, freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const service = serviceUnderTest();
const { call, createUser } = service;
const post = postingUnderKeys(call);

/** Expects that a request was carried out, and not replayed. */
const expectFirst = ({ status, headers }: Awaited<ReturnType<typeof call>>) =>
  expect([status, headers['idempotency-replayed']]).toEqual([201, undefined]);

/** Makes all keys older by this number of hours. */
const age = (hours: number) =>
  service.database.query(
    `UPDATE idempotency_keys SET created_at = (created_at AT TIME ZONE 'UTC' - interval '${hours} hours') AT TIME ZONE 'UTC'`,
  );

/** The logged creations of a user. */
const creations = async (id: unknown) =>
  (await service.events()).filter(({ event, user_id }) => event === 'user_created' && user_id === id);

describe('a create that is repeated under its key', () => {
  test('is 201 with the current user and its current ETag, and is logged once', async () => {
    const key = freshKey();
    const email = freshAddress();
    const first = await post(USERS, key, { email });
    const { id } = first.body as UserBody;
    const headers = { etag: '"1"', location: USERS + id };
    expect(first).toEqual(success(201, user({ email }), headers));

    expect(await post(USERS, key, { email, full_name: null, is_active: false })).toEqual(
      success(201, first.body, { ...headers, ...REPLAYED }),
    );

    const changed = await call('PATCH', USERS + id, { full_name: 'Ada', email: freshAddress() });
    expect(await post('/api/v1/users', key, { email })).toEqual(
      success(201, changed.body, { ...headers, etag: '"2"', ...REPLAYED }),
    );
    expect(await creations(id)).toHaveLength(1);
  });

  test('is 410 after its user is deleted, also if another user has the email', async () => {
    const key = freshKey();
    const email = freshAddress();
    const { id } = (await post(USERS, key, { email })).body as UserBody;
    await call('DELETE', USERS + id);

    expect(await post(USERS, key, { email })).toEqual(refusal('gone_error', USERS));
    await createUser({ email });
    expect(await post(USERS, key, { email })).toEqual(refusal('gone_error', USERS));
  });

  test('is 422 with other values, before any conflict', async () => {
    const key = freshKey();
    const email = freshAddress();
    const taken = (await createUser()).email;
    await post(USERS, key, { email });

    for (const other of [
      { email: email.toUpperCase() },
      { email, full_name: 'Ada' },
      { email, full_name: '' },
      { email: freshAddress() },
      { email: taken },
    ]) {
      expect(await post(USERS, key, other)).toEqual(refusal('idempotency_key_reused_error', USERS));
    }
    expect(await post(USERS, key, { email })).toMatchObject({ status: 201, headers: REPLAYED });
  });

  test('is 422 for invalid values', async () => {
    const key = freshKey();
    await post(USERS, key, { email: freshAddress() });

    expect(await post(USERS, key, { email: 'none' })).toEqual(
      refusal('validation_error', USERS, { errors: ['#/email'] }),
    );
  });
});

describe('a key', () => {
  test('belongs to its operation and its caller, and not to the token', async () => {
    const [key, email] = [freshKey(), freshAddress()];
    const postAs = async (claims: object, body: object) =>
      post(USERS, key, body, { authorization: `Bearer ${await service.issuer.sign(claims)}` });
    expectFirst(await post(USERS, key, { email }));

    for (const sub of ['another', 'svc-test,', `svc-test${key}`, '"svc-test"'])
      expectFirst(await postAs({ sub }, { email: freshAddress() }));
    expectFirst(await post(BATCH, key, { items: [{ email: freshAddress() }] }));
    const again = await postAs({ jti: 'another', roles: ['api.superuser'] }, { email });
    expect(again).toMatchObject({ headers: REPLAYED });
  });

  test('expires 24 hours after the success, and a repeated request does not prolong that', async () => {
    const key = freshKey();
    const email = freshAddress();
    await post(USERS, key, { email });
    await age(23);
    expect(await post(USERS, key, { email })).toMatchObject({ status: 201, headers: REPLAYED });
    await age(1);

    expect(await post(USERS, key, { email })).toEqual(refusal('conflict_error', USERS));
    const other = freshAddress();
    const later = await post(USERS, key, { email: other, full_name: 'Ada' });
    expect(later.headers['idempotency-replayed']).toBe(undefined);
    expect(later.body).toEqual(user({ email: other, full_name: 'Ada' }));
    expect(await post(USERS, key, { email })).toEqual(refusal('idempotency_key_reused_error', USERS));
  });

  test('in 50 concurrent requests creates one user', async () => {
    const key = freshKey();
    const email = freshAddress();
    const responses = await times(50, () => post(USERS, key, { email }));

    expect(responses.map(({ status }) => status)).toEqual(Array(50).fill(201));
    expect(responses.filter(({ headers }) => !headers['idempotency-replayed'])).toHaveLength(1);
    const ids = new Set(responses.map(({ body }) => (body as UserBody).id));
    expect(ids.size).toBe(1);
    expect(await creations([...ids][0])).toHaveLength(1);
  });

  test('in 20 concurrent requests with different values accepts one of them', async () => {
    const key = freshKey();
    const responses = await times(20, () => post(USERS, key, { email: freshAddress() }));
    const refused = responses.filter(({ status }) => status !== 201);

    expect(responses.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(refused).toEqual(Array(19).fill(refusal('idempotency_key_reused_error', USERS)));
  });
});

test.each([
  ['for a taken email', USERS, { email: 'TAKEN@example.com' }, 409],
  ['for its items', BATCH, { items: [{ email: 'none' }] }, 422],
  ['for taken emails', BATCH, { items: [{ email: freshAddress() }, { email: 'TAKEN@example.com' }] }, 409],
])('a request that was refused %s stores nothing', async (_case, path, body, status) => {
  await post(USERS, 'taken', { email: 'taken@example.com' });
  const key = freshKey();
  const count = () => service.database.query('SELECT count(*)::int FROM idempotency_keys');
  const before = await count();
  expect((await post(path, key, body)).status).toBe(status);
  expect(await count()).toEqual(before);

  const email = freshAddress();
  const allowed = path === USERS ? { email } : { items: [{ email }] };
  expectFirst(await post(path, key, allowed));
});

test('the header is ignored by every other operation', async () => {
  const { id } = await createUser();
  const init = { headers: { 'idempotency-key': 'not, a key' } };

  expect((await call('GET', USERS, undefined, init)).status).toBe(200);
  expect((await call('GET', USERS + id, undefined, init)).status).toBe(200);
  expect((await call('PATCH', USERS + id, {}, init)).status).toBe(200);
  expect((await call('DELETE', USERS + id, undefined, init)).status).toBe(204);
});
