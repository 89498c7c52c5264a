import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { isCitus } from '../stage/citus.ts';
import { refusal, TIMESTAMP, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, eventsOf } = service;

test('a defect of the service is a 500 without details, and the log has its cause without a value of the row', async () => {
  await service.database.query(
    `ALTER TABLE users ADD CONSTRAINT nobody_named_eve CHECK (full_name <> 'Eve')`,
  );
  const response = await call('POST', USERS, { email: 'eve@example.com', full_name: 'Eve' });
  const events = await eventsOf(response);

  expect(response).toEqual(refusal('internal_server_error', USERS));
  expect(JSON.stringify(response)).not.toMatch(/insert|constraint|nobody_named|users_|eve|\bat .*:\d+/i);
  // Citus does not report the name of the constraint.
  const refused = isCitus ? 'a value was refused' : 'a value was refused by nobody_named_eve';
  expect(events).toEqual([
    {
      timestamp: expect.stringMatching(TIMESTAMP),
      level: 'error',
      event: 'app_error',
      request_id: response.headers['x-request-id'],
      message: refused,
      status_code: 500,
      path: USERS,
      cause: { name: 'error', code: '23514', message: refused, stack: expect.stringMatching(/\n +at /) },
    },
  ]);
  expect(JSON.stringify(events)).not.toMatch(/eve@example\.com|"Eve"|insert into/i);
  expect((await call('POST', USERS, { email: 'ada@example.com' })).status).toBe(201);
});

test('a value that only PostgreSQL refuses is 422, and the gap in validation is an error in the log', async () => {
  await service.database.query(
    `ALTER TABLE users ADD CONSTRAINT numbers CHECK (full_name !~ '^No' OR full_name::int > 0)`,
  );
  // A word that is in no path of a project, because a stack contains the paths of its files.
  const word = randomBytes(8).toString('hex');
  const response = await call('POST', USERS, { email: `${word}@example.com`, full_name: `No ${word}` });
  const events = await eventsOf(response);

  expect(response.status).toBe(422);
  expect(events).toMatchObject([
    { event: 'app_error', level: 'warning', status_code: 422 },
    {
      event: 'database_refused_value',
      level: 'error',
      cause: { code: '22P02', stack: expect.stringMatching(/\bat /) },
    },
  ]);
  expect(JSON.stringify(events)).not.toContain(word);
});
