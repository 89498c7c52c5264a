import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServer, startTracedService, type TracedService, traceOfCaller } from '../stage/traced-service.ts';

const users = '/api/v1/users/';

describe('the names of spans', () => {
  let service: TracedService;

  beforeAll(async () => {
    service = await startTracedService();
  });

  afterAll(() => service.remove());

  async function createUser(): Promise<string> {
    const response = await service.call('POST', users, { email: `${randomUUID()}@example.com` });
    const { id } = (await response.json()) as { id: string };
    return id;
  }

  test.each<[string, string, number, { path: (id: string) => string; body?: object; route?: string }]>([
    ['GET /api/v1/users/', 'GET', 200, { path: () => `${users}?skip=0`, route: users }],
    ['GET /api/v1/users/', 'GET', 200, { path: () => '/api/v1/users', route: users }],
    ['HEAD /api/v1/users/', 'HEAD', 200, { path: () => users, route: users }],
    ['GET /api/v1/users/{user_id}', 'GET', 200, { path: (id) => users + id, route: `${users}{user_id}` }],
    [
      'GET /api/v1/users/{user_id}',
      'GET',
      200,
      { path: (id) => `${users}${id}/`, route: `${users}{user_id}` },
    ],
    ['GET /api/v1/users/{user_id}', 'GET', 422, { path: () => `${users}x`, route: `${users}{user_id}` }],
    [
      'PATCH /api/v1/users/{user_id}',
      'PATCH',
      200,
      { path: (id) => users + id, body: {}, route: `${users}{user_id}` },
    ],
    [
      'DELETE /api/v1/users/{user_id}',
      'DELETE',
      204,
      { path: (id) => users + id, route: `${users}{user_id}` },
    ],
    ['GET', 'GET', 404, { path: (id) => `/nowhere/${id}` }],
    ['PUT', 'PUT', 405, { path: (id) => users + id }],
    ['HTTP', 'PROPFIND', 405, { path: (id) => users + id }],
  ])('have the route and not the path: %s (%s, %i)', async (name, method, status, request) => {
    const id = await createUser();
    const { traceId, headers } = traceOfCaller();
    const response = await service.call(method, request.path(id), request.body, { headers });
    expect(response.status).toBe(status);

    const server = (await service.receiver.untilTrace(traceId, 1)).find(isServer);
    expect(server?.name).toBe(name);
    expect(server?.attributes['http.route']).toBe(request.route);
    expect(server?.attributes['http.response.status_code']).toBe(status);
  });
});
