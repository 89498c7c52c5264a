import { expect, test } from 'vitest';
import { TIMESTAMP, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const { call, createUser, eventsOf } = serviceUnderTest();

const common = {
  timestamp: expect.stringMatching(TIMESTAMP),
  level: 'info',
  request_id: expect.any(String),
  subject: 'svc-test',
};

test.each([
  ['jane.doe@example.com', 'j***@example.com'],
  ['a@example.com', 'a***@example.com'],
  ['\u{1f600}smile@example.com', '\u{1f600}***@example.com'],
])('user_created has only the id, the masked email and the calling service: %s', async (email, masked) => {
  const created = await call('POST', USERS, { email });

  const { id } = created.body as UserBody;
  const event = { ...common, event: 'user_created', user_id: id, email: masked };
  expect(await eventsOf(created)).toEqual([event]);
});

test.each([
  ['user_updated', 'PATCH', { full_name: 'Jane Doe' }],
  ['user_deleted', 'DELETE', undefined],
])('%s has only the id and the calling service', async (event, method, body) => {
  const { id } = await createUser();
  const response = await call(method, USERS + id.toUpperCase(), body);

  expect(await eventsOf(response)).toEqual([{ ...common, event, user_id: id }]);
});

test('reads and probes log none', async () => {
  const { id } = await createUser();
  for (const path of [USERS + id, USERS, '/health', '/ready']) {
    const response = await call('GET', path);
    expect([response.status, await eventsOf(response)]).toEqual([200, []]);
  }
});
