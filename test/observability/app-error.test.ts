import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { lastResponse, written } from '../stage/connection.ts';
import { hold, holdUsers } from '../stage/locks.ts';
import { refusal, type ServiceResponse, TIMESTAMP, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest(() => ({ SVC_BODY_LIMIT: '1024', SVC_POSTGRES_STATEMENT_TIMEOUT: '0.3' }));
const { call, eventsOf } = service;

const warning = ({ headers }: ServiceResponse, fields: object) => ({
  timestamp: expect.stringMatching(TIMESTAMP),
  level: 'warning',
  event: 'app_error',
  request_id: headers['x-request-id'],
  ...fields,
});

const unknown = `${USERS}11111111-1111-1111-1111-111111111111`;
const email = 'another@example.com';

test.each<[string, Parameters<typeof call>, number, RegExp]>([
  ['a path that is not percent-encoded UTF-8', ['GET', '/api/%ff'], 400, /not valid percent-encoded UTF-8/],
  ['an unknown path', ['GET', '/nowhere?token=secret'], 404, /path does not exist/],
  ['an unknown user', ['GET', unknown], 404, /no user with this id/],
  ['a method that the path does not support', ['PUT', USERS], 405, /supports only these methods: /],
  ['a media type that is not JSON', ['POST', USERS, undefined, { body: 'x' }], 415, /application\/json/],
  ['a body over the limit', ['POST', USERS, { email, full_name: 'x'.repeat(2000) }], 413, /1024 bytes/],
  ['invalid values', ['POST', USERS, { email: 'nobody' }], 422, /not valid/],
  ['an invalid query value', ['GET', `${USERS}?limit=0`], 422, /not valid/],
])('app_error is logged for %s', async (_case, [method, path, ...rest], status, message) => {
  const response = await call(method, path, ...rest);

  expect(response.status).toBe(status);
  expect(await eventsOf(response)).toEqual([
    warning(response, {
      message: expect.stringMatching(message),
      status_code: status,
      path: path.split('?')[0],
    }),
  ]);
});

test.each([
  ['bytes that are not HTTP', 'HELO example.com\r\n\r\n', 400, '/'],
  ['a request without Host', written('GET /health', [['Connection', 'close']]), 400, '/health'],
  ['the method CONNECT', written('CONNECT example.com:443', [['Host', 'example.com:443']]), 400, '/'],
  ['headers that are too large', written('GET /health', [['A', 'x'.repeat(20_000)]]), 431, '/'],
])('app_error is logged for %s, which the host itself refuses', async (_case, content, status, path) => {
  const response = await lastResponse(service.url, content);

  expect(response.status).toBe(status);
  expect(await eventsOf(response)).toEqual([
    warning(response, { message: expect.stringMatching(/./), status_code: status, path }),
  ]);
});

test('app_error is an error from 500 on, with the cause, which is not in the response', async () => {
  const lock = await holdUsers(service.database);
  const response = await call('GET', USERS);
  await lock.release();

  expect(response).toEqual(refusal('service_unavailable_error', USERS));
  expect(JSON.stringify(response)).not.toMatch(/55P03|PostgreSQL|stack/);
  expect(await eventsOf(response)).toEqual([
    {
      ...warning(response, { status_code: 503, path: USERS }),
      level: 'error',
      message: 'PostgreSQL cannot answer: 55P03: canceling statement due to lock timeout',
      cause: {
        name: 'error',
        code: '55P03',
        message: 'canceling statement due to lock timeout',
      },
    },
  ]);
});

test('app_error is logged for every refused /ready', async () => {
  // While other sessions respond, a check that waits for a lock is not an answer.
  await sleep(1000);
  const lock = await hold(service.database, 'LOCK TABLE kysely_migration IN ACCESS EXCLUSIVE MODE');
  const response = await call('GET', '/ready');
  await lock.release();

  expect(response.status).toBe(503);
  expect(await eventsOf(response)).toMatchObject([
    { event: 'app_error', level: 'error', status_code: 503, path: '/ready', cause: expect.anything() },
  ]);
});
