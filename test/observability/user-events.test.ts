import { expect, test } from 'vitest';
import { TIMESTAMP, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

async function eventsOf(requestId: string) {
  return (await service.events()).filter(({ request_id }) => request_id === requestId);
}

async function create(email: string, requestId: string): Promise<UserBody> {
  const init = { headers: { 'x-request-id': requestId } };
  return (await service.call('POST', USERS, { email }, init)).body as UserBody;
}

const common = { timestamp: expect.stringMatching(TIMESTAMP), level: 'info', subject: 'svc-test' };

test('user_created has only the id, the masked email and the calling service', async () => {
  const { id } = await create('jane.doe@example.com', 'create-1');

  expect(await eventsOf('create-1')).toEqual([
    { ...common, event: 'user_created', request_id: 'create-1', user_id: id, email: 'j***@example.com' },
  ]);
});

test.each([
  ['a@example.com', 'a***@example.com'],
  ['\u{1f600}smile@example.com', '\u{1f600}***@example.com'],
])('user_created has %s as %s', async (email, masked) => {
  const requestId = `mask-${masked.length}-${email.length}`;
  await create(email, requestId);

  expect(await eventsOf(requestId)).toMatchObject([{ event: 'user_created', email: masked }]);
});

test.each([
  ['user_updated', 'PATCH', { full_name: 'Jane Doe' }],
  ['user_deleted', 'DELETE', undefined],
])('%s has only the id and the calling service', async (event, method, body) => {
  const { id } = await create(`${event}@example.com`, 'before');
  const init = { headers: { 'x-request-id': event } };
  await service.call(method, USERS + id.toUpperCase(), body, init);

  expect(await eventsOf(event)).toEqual([{ ...common, event, request_id: event, user_id: id }]);
});

test('reads and probes log none', async () => {
  const { id } = await service.createUser();
  for (const path of [USERS + id, USERS, '/health', '/ready']) {
    const { status } = await service.call('GET', path, undefined, { headers: { 'x-request-id': 'read-1' } });
    expect(status).toBe(200);
  }

  expect(await eventsOf('read-1')).toEqual([]);
});
