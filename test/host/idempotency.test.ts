import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerOf, freshAddress, refusal, success, type UserBody, user } from '../stage/answers.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';
const BATCH = `${USERS}batch`;

let service: Awaited<ReturnType<typeof startService>>;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.stop());

const freshKey = () => randomUUID();

const post = async (path: string, key: string, body: unknown, headers: Record<string, string> = {}) =>
  answerOf(await service.call('POST', path, body, { headers: { 'idempotency-key': key, ...headers } }));

describe('a create with an Idempotency-Key', () => {
  test('is carried out once, and answered again with the user as it is now', async () => {
    const key = freshKey();
    const email = freshAddress();
    const first = await post(USERS, key, { email });
    const { id } = first.body as UserBody;
    const created = { etag: '"1"', location: `${USERS}${id}` };
    expect(first).toEqual(success(201, user({ email }), created));

    const again = await post(USERS, key, { email, full_name: null });
    expect(again).toEqual(success(201, first.body, { ...created, 'idempotency-replayed': 'true' }));

    const changed = await answerOf(await service.call('PATCH', USERS + id, { full_name: 'Ada' }));
    const now = await post(USERS, `"${key}"`, { email });
    expect(now).toEqual(
      success(201, changed.body, { ...created, etag: '"2"', 'idempotency-replayed': 'true' }),
    );
    expect(
      (await service.events()).filter(({ event, user_id }) => event === 'user_created' && user_id === id),
    ).toHaveLength(1);
  });

  test('whose user is gone is 410', async () => {
    const key = freshKey();
    const email = freshAddress();
    const { id } = (await post(USERS, key, { email })).body as UserBody;
    await service.call('DELETE', USERS + id);

    expect(await post(USERS, key, { email })).toEqual(refusal('gone_error', USERS));
  });

  test('with other values is 422, before any conflict', async () => {
    const key = freshKey();
    const email = freshAddress();
    await post(USERS, key, { email });

    for (const other of [
      { email: email.toUpperCase() },
      { email, full_name: 'Ada' },
      { email: freshAddress() },
    ]) {
      expect(await post(USERS, key, other)).toEqual(refusal('idempotency_key_reused_error', USERS));
    }
  });

  test('that was refused leaves nothing behind', async () => {
    const key = freshKey();
    const email = freshAddress();
    await post(USERS, freshKey(), { email });
    expect(await post(USERS, key, { email })).toEqual(refusal('conflict_error', USERS));

    const other = freshAddress();
    expect((await post(USERS, key, { email: other })).status).toBe(201);
  });

  test('is that of its caller and its operation alone', async () => {
    const key = freshKey();
    const [one, two, three] = [freshAddress(), freshAddress(), freshAddress()];
    const authorization = `Bearer ${await service.issuer.sign({ sub: 'another' })}`;

    expect((await post(USERS, key, { email: one })).status).toBe(201);
    expect((await post(USERS, key, { email: two }, { authorization })).status).toBe(201);
    expect((await post(BATCH, key, { items: [{ email: three }] })).status).toBe(201);
  });

  test('sent 50 times at once creates one user', async () => {
    const key = freshKey();
    const email = freshAddress();
    const answers = await Promise.all(Array.from({ length: 50 }, () => post(USERS, key, { email })));

    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 201));
    expect(answers.filter(({ headers }) => !headers['idempotency-replayed'])).toHaveLength(1);
    expect(new Set(answers.map(({ body }) => (body as UserBody).id)).size).toBe(1);
  });
});

test.each(['', 'a b', 'a,b', '"a', 'a\u00e9', '"a";x=1', '""', `${'k'.repeat(256)}`])(
  'the key %j is 422, told with all else that is wrong',
  async (key) => {
    expect(await post(USERS, key, { email: 'none' })).toEqual(
      refusal('validation_error', USERS, { errors: ['Idempotency-Key', '#/email'] }),
    );
  },
);

describe('an atomic batch', () => {
  test('stores all users in the order of its items', async () => {
    const items = [{ email: `z.${freshAddress()}` }, { email: `a.${freshAddress()}`, full_name: 'A' }];
    const answer = await post(BATCH, freshKey(), { items });

    expect(answer).toEqual(success(201, [user(items[0] as never), user(items[1] as never)]));
  });

  test('names every taken email at once, and stores nothing', async () => {
    const [taken, other, free] = [freshAddress(), freshAddress(), freshAddress()];
    await post(BATCH, freshKey(), { items: [{ email: taken }, { email: other }] });
    const items = [{ email: taken.toUpperCase() }, { email: free }, { email: other }];
    const errors = ['#/items/0/email', '#/items/2/email'];

    expect(await post(BATCH, freshKey(), { items })).toEqual(refusal('conflict_error', BATCH, { errors }));
    expect((await post(USERS, freshKey(), { email: free })).status).toBe(201);
  });

  test('names every email that stands earlier in it, whatever its case', async () => {
    const email = freshAddress();
    const items = [
      { email: `\u00e9${email}` },
      { email: freshAddress() },
      { email: `\u00c9${email.toUpperCase()}` },
    ];

    expect(await post(BATCH, freshKey(), { items })).toEqual(
      refusal('validation_error', BATCH, { errors: ['#/items/2/email'] }),
    );
  });

  test('is answered again under its key, and 410 once a user is gone', async () => {
    const key = freshKey();
    const body = { items: [{ email: freshAddress() }, { email: freshAddress() }] };
    const first = await post(BATCH, key, body);

    expect(await post(BATCH, key, { ...body, mode: 'atomic' })).toEqual({
      ...first,
      headers: { ...first.headers, 'x-request-id': expect.any(String), 'idempotency-replayed': 'true' },
    });
    expect(await post(BATCH, key, { ...body, mode: 'partial' })).toEqual(
      refusal('idempotency_key_reused_error', BATCH),
    );
    await service.call('DELETE', USERS + (first.body as UserBody[])[1]?.id);
    expect(await post(BATCH, key, body)).toEqual(refusal('gone_error', BATCH));
  });
});

test('a partial batch tells what became of each item, and again under its key', async () => {
  const key = freshKey();
  const [taken, one, two] = [freshAddress(), freshAddress(), freshAddress()];
  await post(USERS, freshKey(), { email: taken });
  const items = [{ email: one }, { email: taken }, { email: 'none' }, { email: one }, { email: two }, 7];
  const problemOf = (code: 'conflict_error' | 'validation_error' | 'gone_error', pointer?: string) => {
    const { status, body } = refusal(code, BATCH, pointer ? { errors: [pointer] } : {});
    return { status, problem: body };
  };
  const results = [
    { status: 201, user: user({ email: one }) },
    problemOf('conflict_error', '#/items/1/email'),
    problemOf('validation_error', '#/items/2/email'),
    problemOf('conflict_error', '#/items/3/email'),
    { status: 201, user: user({ email: two }) },
    problemOf('validation_error', '#/items/5'),
  ];

  const first = await post(BATCH, key, { items, mode: 'partial' });
  expect(first).toEqual(success(200, results));

  const [{ user: created }] = first.body as [{ user: UserBody }];
  await service.call('DELETE', USERS + created.id);
  expect(await post(BATCH, key, { items, mode: 'partial' })).toEqual(
    success(200, [problemOf('gone_error'), ...results.slice(1)], { 'idempotency-replayed': 'true' }),
  );
});
