import { beforeEach, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { type ChangeBody, endOfFeed } from '../stage/changes.ts';
import { freshKey } from '../stage/keyed.ts';
import { BATCH, freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;
const writer = administratorOf(service);

let end: string;

beforeEach(async () => {
  end = await endOfFeed(call);
});

const setBack = (by: number) =>
  writer.query(
    `SELECT setval(name, greatest(last_value - ${by}, 1), last_value > ${by})
     FROM user_changes_unnumbered_sequence_seq, LATERAL (SELECT 'user_changes_unnumbered_sequence_seq') AS sequence (name)`,
  );

const create = async (full_name = 'Ada') => {
  const { status, body } = await call('POST', USERS, { email: freshAddress(), full_name });
  expect(status).toBe(201);
  return body as UserBody;
};

/** The user's id and the version of each change after a cursor. */
const changesAfter = async (link: string) =>
  ((await call('GET', `${link}&limit=1000`)).body as ChangeBody[]).map(({ subject, data }) => [
    subject,
    data.version,
  ]);

test.each([
  [1, 1],
  [5, 5],
  [5, 12],
  [1_000_000, 3],
])(
  'after the sequence was set back by %i, a read has each of %i changes that were written since, in their order',
  async (by, count) => {
    const expected = [];
    for (let index = 0; index < 5; index += 1) expected.push([(await create()).id, 1]);
    expect(await changesAfter(end)).toEqual(expected);
    await setBack(by);
    for (let index = 0; index < count; index += 1) {
      expected.push([(await create()).id, 1]);
      if (index % 3 === 0) expect(await changesAfter(end)).toEqual(expected);
    }

    expect(await changesAfter(end)).toEqual(expected);
    await service.cleanUp();
    expected.push([(await create()).id, 1]);
    expect(await changesAfter(end)).toEqual(expected);
  },
);

test('every kind of write is stored and read, although changes without a position have the numbers that come again', async () => {
  const { id } = await create();
  const created = await Promise.all(Array.from({ length: 10 }, () => create()));
  for (const by of [11, 5, 1]) {
    await setBack(by);
    await call('PATCH', USERS + id, { full_name: `${by}` });
  }
  await setBack(3);
  const key = { headers: { 'idempotency-key': freshKey() } };
  const responses = [
    await call('POST', USERS, { email: freshAddress() }, key),
    await call('POST', BATCH, { items: Array.from({ length: 20 }, () => ({ email: freshAddress() })) }),
    await call('PATCH', USERS + id, { full_name: 'last' }),
    await call('DELETE', USERS + id),
  ];
  const changes = await changesAfter(end);

  expect(responses.map(({ status }) => status)).toEqual([201, 201, 200, 204]);
  expect(changes).toHaveLength(11 + 3 + 1 + 20 + 2);
  expect(changes.filter(([subject]) => subject === id)).toEqual(
    [1, 2, 3, 4, 5, 6].map((version) => [id, version]),
  );
  for (const user of created) expect(changes).toContainEqual([user.id, 1]);
  expect(await writer.query('SELECT FROM user_changes_unnumbered')).toEqual([]);
});
