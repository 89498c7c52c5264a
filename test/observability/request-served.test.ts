import { expect, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startFunction } from '../stage/lambda-function.ts';
import { TIMESTAMP } from '../stage/responses.ts';
import { until } from '../stage/until.ts';

const service = forAllTests(() => startBuiltService({ SVC_LOG_LEVEL: 'debug' }));

const served = (method: string, status_code: number, route?: string) => ({
  timestamp: expect.stringMatching(TIMESTAMP),
  level: 'debug',
  event: 'request_served',
  request_id: expect.any(String),
  method,
  ...(route && { route }),
  status_code,
  duration_ms: expect.any(Number),
});

const USER = '/api/v1/users/{user_id}';
const ID = '/api/v1/users/0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';

test.each([
  ['GET', '/api/v1/users', 200, '/api/v1/users/'],
  ['HEAD', '/api/v1/users/?limit=1', 200, '/api/v1/users/'],
  ['GET', ID, 404, USER],
  ['POST', '/api/v1/users/', 415, '/api/v1/users/'],
  ['OPTIONS', '/api/v1/users/', 204, undefined],
  ['GET', '/nowhere/ada@example.com', 404, undefined],
  ['POST', '/health', 405, undefined],
])('%s %s logs a request_served with %d', async (method, path, status, route) => {
  const response = await service.call(method, path);
  const requestId = response.headers['x-request-id'];
  const event = await until('the event', () =>
    service.events('request_served').find(({ request_id }) => request_id === requestId),
  );

  expect(response.status).toBe(status);
  expect(event).toEqual(served(method, status, route));
  expect(event?.duration_ms).toBeGreaterThan(0);
});

test('probes are not logged', async () => {
  for (const path of ['/health', '/ready', '/health/'])
    expect((await fetch(service.url + path)).status).toBe(200);
  const after = await service.call('GET', '/nowhere');
  const requestId = after.headers['x-request-id'];
  await until('a later event', () => service.events().some(({ request_id }) => request_id === requestId));

  expect(service.events('request_served').filter(({ route }) => /health|ready/.test(String(route)))).toEqual(
    [],
  );
});

test.each([
  ['getUser', 'getUser', served('GET', 404, USER)],
  ['unmatched', 'users-options', served('OPTIONS', 204)],
  ['health', 'health', undefined],
])('the function %s logs it', async (operationId, name, expected) => {
  const instance = await forThisTest(startFunction, operationId, service.environment);
  await instance.call(await eventOf(name, { token: await service.issuer.sign() }));

  expect(instance.lines().filter(({ event }) => event === 'request_served')).toEqual(
    expected ? [expected] : [],
  );
});
