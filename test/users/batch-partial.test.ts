import { describe, expect, test } from 'vitest';
import { freshKey, postingUnderKeys, REPLAYED } from '../stage/keyed.ts';
import { BATCH, freshAddress, refusal, success, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser } = service;
const post = postingUnderKeys(call);

const partial = (items: unknown) => ({ items, mode: 'partial' });
const stored = (email: string) => ({ status: 201, user: user({ email }) });

/** The result of an item that was refused: status, and the problem as a response would have it. */
function refused(code: Parameters<typeof refusal>[0], ...errors: readonly string[]) {
  const { status, body } = refusal(code, BATCH, errors.length === 0 ? {} : { errors });
  return { status, problem: body };
}

const taken = (index: number) => refused('conflict_error', `#/items/${index}/email`);

describe('a partial batch', () => {
  test('is 200 with one result per item, in their order', async () => {
    const [one, two, three] = [freshAddress(), freshAddress(), freshAddress()];
    const known = (await createUser()).email;
    const items = [
      { email: `z.${one}` },
      { email: known.toUpperCase() },
      { email: 'none', full_name: 7 },
      { email: two },
      { email: two.toUpperCase() },
      { email: 'none' },
      null,
      { email: three, full_name: 'Ada' },
    ];

    expect(await call('POST', BATCH, partial(items))).toEqual(
      success(200, [
        stored(`z.${one}`),
        taken(1),
        refused('validation_error', '#/items/2/email', '#/items/2/full_name'),
        stored(two),
        taken(4),
        refused('validation_error', '#/items/5/email'),
        refused('validation_error', '#/items/6'),
        { status: 201, user: user({ email: three, full_name: 'Ada' }) },
      ]),
    );
  });

  test('ignores the email of an item with refused values, and a later item can have it', async () => {
    const email = freshAddress();

    expect(await call('POST', BATCH, partial([{ email, full_name: 7 }, { email }]))).toEqual(
      success(200, [refused('validation_error', '#/items/0/full_name'), stored(email)]),
    );
  });

  test('that stores nothing is 200, and 200 again under its key', async () => {
    const { id, email } = await createUser();
    const body = partial([{ email }, { email: 'none' }]);
    const results = [taken(0), refused('validation_error', '#/items/1/email')];
    const key = freshKey();

    expect(await call('POST', BATCH, body)).toEqual(success(200, results));
    expect(await post(BATCH, key, body)).toEqual(success(200, results));
    await call('DELETE', `/api/v1/users/${id}`);
    expect(await post(BATCH, key, body)).toEqual(success(200, results, REPLAYED));
    expect((await call('GET', `/api/v1/users/?email=${email}`)).body).toEqual([]);
  });

  test('logs one user_created per stored user, and no app_error for an item', async () => {
    const items = [{ email: freshAddress() }, { email: 'none' }, { email: freshAddress() }];
    const events = await service.eventsOf(await call('POST', BATCH, partial(items)));

    expect(events.map(({ event }) => event)).toEqual(['user_created', 'user_created']);
  });
});

describe('a partial batch that is repeated under its key', () => {
  test('has the first statuses, the users as they are now, and 410 for users deleted since', async () => {
    const key = freshKey();
    const known = await createUser();
    const emails = [freshAddress(), known.email, freshAddress(), freshAddress()];
    const body = partial(emails.map((email) => ({ email })));
    const first = (await post(BATCH, key, body)).body as { user: UserBody }[];
    const path = (index: number) => `/api/v1/users/${first[index]?.user.id}`;
    await call('DELETE', path(0));
    await call('DELETE', `/api/v1/users/${known.id}`);
    const { body: changed } = await call('PATCH', path(3), { full_name: 'Ada' });

    const results = [refused('gone_error'), taken(1), first[2], { status: 201, user: changed }];
    expect(await post(BATCH, key, body)).toEqual(success(200, results, REPLAYED));
    await Promise.all([call('DELETE', path(2)), call('DELETE', path(3))]);
    expect((await post(BATCH, key, body)).body).toEqual([
      ...[refused('gone_error'), taken(1), refused('gone_error'), refused('gone_error')],
    ]);
  });

  test('is the same request with other unknown members, but not with other values, also of refused items', async () => {
    const key = freshKey();
    const email = freshAddress();
    const items = [{ email }, { email: 'none', full_name: 'Ada' }, 7, { email: { deep: [1] } }];
    await post(BATCH, key, partial(items));
    const [one, two, three, four] = items as [object, object, number, object];

    const same = [one, { note: 1, ...two }, three, { ...four, id: 'x' }];
    expect(await post(BATCH, key, partial(same))).toMatchObject({ status: 200, headers: REPLAYED });
    for (const others of [
      [one, { ...two, email: 'other' }, three, four],
      [one, { ...two, full_name: null }, three, four],
      [one, two, 8, four],
      [one, two, '7', four],
      [one, two, three, { email: { deep: [2] } }],
      [one, two, three, { email: { deep: [[1]] } }],
      [one, two, three],
    ]) {
      expect(await post(BATCH, key, partial(others))).toEqual(refusal('idempotency_key_reused_error', BATCH));
    }
  });

  test('may have an item nested as deep as the body limit allows', async () => {
    const email = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
    const body = `{"items":[{"email":${email}}],"mode":"partial"}`;
    const init = { body, headers: { 'idempotency-key': freshKey() } };
    const results = [refused('validation_error', '#/items/0/email')];

    expect(await call('POST', BATCH, {}, init)).toEqual(success(200, results));
    expect(await call('POST', BATCH, {}, init)).toEqual(success(200, results, REPLAYED));
  });
});
