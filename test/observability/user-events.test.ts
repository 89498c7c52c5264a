import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TIMESTAMP } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

describe('the events of user operations', () => {
  let service: Awaited<ReturnType<typeof startService>>;

  beforeAll(async () => {
    service = await startService();
  });

  afterAll(() => service.stop());

  async function eventsOf(requestId: string) {
    return (await service.events()).filter(({ request_id }) => request_id === requestId);
  }

  async function create(email: string, requestId: string) {
    const init = { headers: { 'x-request-id': requestId } };
    const response = await service.call('POST', '/api/v1/users/', { email }, init);
    return (await response.json()) as { id: string };
  }

  const common = { timestamp: expect.stringMatching(TIMESTAMP), level: 'info', subject: 'svc-test' };

  test('user_created has only the id, the masked email and the calling service', async () => {
    const { id } = await create('jane.doe@example.com', 'create-1');

    expect(await eventsOf('create-1')).toEqual([
      {
        ...common,
        event: 'user_created',
        request_id: 'create-1',
        user_id: id,
        email: 'j***@example.com',
      },
    ]);
  });

  test.each([
    ['a@example.com', 'a***@example.com'],
    ['"quoted"@example.com', '"***@example.com'],
    ['\u{1f600}smile@example.com', '\u{1f600}***@example.com'],
    [`${'l'.repeat(243)}@example.com`, 'l***@example.com'],
  ])('of the email %s only %s is logged', async (email, masked) => {
    const requestId = `mask-${masked.length}-${email.length}`;
    await create(email, requestId);

    expect(await eventsOf(requestId)).toMatchObject([{ event: 'user_created', email: masked }]);
  });

  test('user_updated has only the id and the calling service', async () => {
    const { id } = await create('update@example.com', 'update-0');
    const init = { headers: { 'x-request-id': 'update-1' } };
    await service.call('PATCH', `/api/v1/users/${id}`, { full_name: 'Jane Doe' }, init);

    expect(await eventsOf('update-1')).toEqual([
      { ...common, event: 'user_updated', request_id: 'update-1', user_id: id },
    ]);
  });

  test('user_deleted has only the id and the calling service', async () => {
    const { id } = await create('delete@example.com', 'delete-0');
    const init = { headers: { 'x-request-id': 'delete-1' } };
    await service.call('DELETE', `/api/v1/users/${id.toUpperCase()}`, undefined, init);

    expect(await eventsOf('delete-1')).toEqual([
      { ...common, event: 'user_deleted', request_id: 'delete-1', user_id: id },
    ]);
  });

  test('reads and probes log none', async () => {
    const { id } = await create('read@example.com', 'read-0');
    for (const path of [`/api/v1/users/${id}`, '/api/v1/users/', '/health', '/ready']) {
      const response = await service.call('GET', path, undefined, { headers: { 'x-request-id': 'read-1' } });
      expect(response.status).toBe(200);
    }

    expect(await eventsOf('read-1')).toEqual([]);
  });

  test('a refused operation logs none', async () => {
    await create('taken@example.com', 'taken-0');
    await create('Taken@example.com', 'taken-1');

    expect((await eventsOf('taken-1')).map(({ event }) => event)).toEqual(['app_error']);
  });
});
