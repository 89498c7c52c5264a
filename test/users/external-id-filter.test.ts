import { describe, expect, test } from 'vitest';
import { cursorAfter } from '../../lib/users/list-cursor.ts';
import { freshAddress, refusal, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;

const freshId = () => `hr-${crypto.randomUUID()}`;
const created = async (body: object = {}) =>
  (await call('POST', USERS, { email: freshAddress(), ...body })).body as UserBody;
const pathOf = (query: Record<string, string>) =>
  `${USERS}?${Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')}`;
const list = (query: Record<string, string>) => call('GET', pathOf(query));

describe('the filter external_id', () => {
  test.each(['plain', 'a b', 'a+b', '50%', 'é&ü=?#', '🌍'.repeat(255), '"\\', 'null'])(
    'finds exactly %j',
    async (value) => {
      const user = await created({ external_id: value });
      await created({ external_id: `${value.slice(0, -1)}X` });

      expect(await list({ external_id: value })).toEqual(success(200, [user]));
      expect((await list({ external_id: value.slice(0, 200).toUpperCase().concat('?') })).body).toEqual([]);
    },
  );

  test('reads + as a space', async () => {
    const user = await created({ external_id: 'one two' });

    expect((await call('GET', `${USERS}?external_id=one+two`)).body).toEqual([user]);
  });

  test('is combined with the other filters by "and"', async () => {
    const external_id = freshId();
    const user = await created({ external_id });
    const { email } = user;

    expect((await list({ external_id, email, is_active: 'true', ids: user.id })).body).toEqual([user]);
    expect((await list({ external_id, is_active: 'false' })).body).toEqual([]);
    expect((await list({ external_id, email: 'other@example.com' })).body).toEqual([]);
    expect((await list({ external_id, sort: '-created_at', limit: '1' })).body).toEqual([user]);
  });

  test.each(['', 'x'.repeat(256), '🌍'.repeat(256), '\u0000', 'a\tb', 'a\u0085'])(
    'is 422 for a value that create would refuse: %j',
    async (value) => {
      expect(await list({ external_id: value })).toEqual(
        refusal('validation_error', USERS, { errors: ['external_id'] }),
      );
    },
  );

  test('is 422 for bytes that are not UTF-8, and if it is repeated', async () => {
    for (const query of ['external_id=%ff', 'external_id=%ed%a0%80', 'external_id=a&external_id=b'])
      expect(await call('GET', `${USERS}?${query}`)).toEqual(
        refusal('validation_error', USERS, { errors: ['external_id'] }),
      );
  });

  test('belongs to the filters of a cursor, and cursors of earlier versions stay valid', async () => {
    const { id, created_at, external_id = '' } = await created({ external_id: freshId() });
    const position = { id: id.replace(/.$/, '0'), created_at: Date.parse(created_at) - 1 };
    const refused = refusal('validation_error', USERS, { errors: ['cursor'] });
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
