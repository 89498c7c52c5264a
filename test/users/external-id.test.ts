import { describe, expect, test } from 'vitest';
import { cursorAfter } from '../../lib/users/list-cursor.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { BATCH, freshAddress, invalid, refusal, success, USERS, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser } = service;
const post = postingUnderKeys(call);

const freshId = () => `hr-${crypto.randomUUID()}`;

const ALLOWED = [' ', '🌍'.repeat(255), 'e\u0301', '\u2028', '"\\</script>'];
const REFUSED = ['', 'x'.repeat(256), '🌍'.repeat(256), '\u0000', '\u007f', 'a\u0085', '\ud800', 7];

describe('an external id', () => {
  test.each(ALLOWED)('%j is stored and returned exactly as given', async (value) => {
    const { id } = await createUser();
    const { status, body } = await call('PATCH', USERS + id, { external_id: value });

    expect([status, (body as { external_id: unknown }).external_id]).toEqual([200, value]);
    expect((await call('GET', USERS + id)).body).toEqual(body);
    await call('PATCH', USERS + id, { external_id: null });
  });

  test.each(REFUSED)('%j is 422 on create, in a batch and on update', async (value) => {
    const { id } = await createUser();
    const body = { email: freshAddress(), external_id: value };

    for (const [method, path, sent, pointer] of [
      ['POST', USERS, body, '#/external_id'],
      ['POST', BATCH, { items: [body] }, '#/items/0/external_id'],
      ['PATCH', USERS + id, { external_id: value }, '#/external_id'],
    ] as const) {
      const response = await call(method, path, sent);
      const named = (response.body as { errors: { pointer: string }[] }).errors.map((fault) => fault.pointer);
      expect(response).toEqual(refusal('validation_error', path, { errors: 'any' }));
      expect(new Set(named)).toEqual(new Set([pointer]));
    }
  });

  test('is the last member of a user, and only when the user has one', async () => {
    const external_id = freshId();
    const one = await createUser({ external_id });
    const [two, three] = [await createUser({ external_id: null }), await createUser()];
    const list = await call('GET', `${USERS}?ids=${one.id},${two.id},${three.id}`);

    expect(one).toEqual(user({ email: one.email, external_id }));
    expect(Object.keys(one).at(-1)).toBe('external_id');
    for (const without of [two, three]) expect(without).toEqual(user({ email: without.email }));
    expect(list.body).toEqual([one, two, three]);
  });

  test('is not changed by an update without the member, and removed by null', async () => {
    const external_id = freshId();
    const { id, email } = await createUser({ external_id });
    const bodies = [];
    for (const update of [{ full_name: 'Ada' }, { external_id: null }, { external_id: null }])
      bodies.push((await call('PATCH', USERS + id, update)).body);
    const named = { ...user({ email }), full_name: 'Ada' };

    expect(bodies).toEqual([{ ...named, external_id }, named, named]);
  });

  test('is one of the changed names after an update with another value, and no change contains its value', async () => {
    const { id } = await createUser({ external_id: freshId() });
    const external_id = freshId();
    for (const update of [{ external_id }, { external_id }, { external_id: null, is_active: false }])
      await call('PATCH', USERS + id, update);
    const { body } = await call('GET', `${USERS}${id}/changes`);
    const names = (body as { data: { changed: string[] } }[]).map(({ data }) => data.changed);

    expect(names).toEqual([[], ['external_id'], [], ['is_active', 'external_id']]);
    expect(JSON.stringify(body)).not.toContain('hr-');
    expect(JSON.stringify(service.events())).not.toContain('hr-');
  });
});

describe('under an idempotency key', () => {
  test('the external id is part of the values, and absent and null are the same value', async () => {
    for (const path of [USERS, BATCH]) {
      const [email, external_id] = [freshAddress(), freshId()];
      const bodyOf = (values: object) =>
        path === USERS ? { email, ...values } : { items: [{ email, ...values }] };
      const [key, other] = [freshKey(), freshKey()];
      const statuses = [];
      for (const sent of [external_id, external_id, freshId(), null])
        statuses.push((await post(path, key, bodyOf({ external_id: sent }))).status);
      expect(statuses).toEqual([201, 201, 422, 422]);

      await service.database.query(`DELETE FROM users WHERE email = '${email}'`);
      const again = [];
      for (const values of [{}, { external_id: null }, {}, { external_id }])
        again.push((await post(path, other, bodyOf(values))).status);
      expect(again).toEqual([201, 201, 201, 422]);
    }
  });

  test('a refused external id of an item counts as sent', async () => {
    const [email, key] = [freshAddress(), freshKey()];
    const statuses = [];
    for (const external_id of ['', '', 7, null])
      statuses.push((await post(BATCH, key, { mode: 'partial', items: [{ email, external_id }] })).status);

    expect(statuses).toEqual([200, 200, 422, 422]);
  });
});

const list = (query: Record<string, string>) => {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return call('GET', `${USERS}?${pairs.join('&')}`);
};

describe('the filter external_id', () => {
  test.each(['plain', 'a b', 'a+b', '50%', 'é&ü=?#', '🌍'.repeat(255), '"\\', 'null'])(
    'finds exactly %j',
    async (value) => {
      const user = await createUser({ external_id: value });
      await createUser({ external_id: `${[...value].slice(0, -1).join('')}X` });

      expect(await list({ external_id: value })).toEqual(success(200, [user]));
      expect((await list({ external_id: value.slice(0, 200).toUpperCase().concat('?') })).body).toEqual([]);
    },
  );

  test('reads + as a space', async () => {
    const user = await createUser({ external_id: 'one two' });

    expect((await call('GET', `${USERS}?external_id=one+two`)).body).toEqual([user]);
  });

  test('is combined with the other filters by "and"', async () => {
    const external_id = freshId();
    const user = await createUser({ external_id });
    const { email } = user;

    expect((await list({ external_id, email, is_active: 'true', ids: user.id })).body).toEqual([user]);
    expect((await list({ external_id, is_active: 'false' })).body).toEqual([]);
    expect((await list({ external_id, email: 'other@example.com' })).body).toEqual([]);
    expect((await list({ external_id, sort: '-created_at', limit: '1' })).body).toEqual([user]);
  });

  test('belongs to the filters of a cursor, and cursors of earlier versions stay valid', async () => {
    const { id, created_at, external_id = '' } = await createUser({ external_id: freshId() });
    const position = { id: id.replace(/.$/, '0'), created_at: Date.parse(created_at) - 1 };
    const refused = invalid(USERS, 'cursor');
    const bound = cursorAfter(position, { sort: 'created_at', external_id });
    const unbound = cursorAfter(position, { sort: 'created_at' });

    expect((await list({ external_id, cursor: bound })).body).toMatchObject([{ id }]);
    expect(await list({ external_id: 'other', cursor: bound })).toEqual(refused);
    expect(await list({ cursor: bound })).toEqual(refused);
    expect(await list({ external_id, cursor: unbound })).toEqual(refused);
    // The cursor of the example user, as version 1.1.0 wrote it.
    const example = {
      id: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70',
      created_at: Date.parse('2026-01-02T03:04:05.678Z'),
    };
    expect(cursorAfter(example, { sort: 'created_at' })).toBe(
      'AAABm3ypjy4BmfPIW3p8Pp1fK4ocTm9w9rPSkknW3TGauxr4C_f_HgHS',
    );
  });
});
