import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { readResponse, refusal } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';

let service: Awaited<ReturnType<typeof startService>>;

// A constraint of the table that the service does not know. A violation is a defect of the service.
beforeAll(async () => {
  service = await startService();
  const admin = await administer(service.database.name);
  await admin.query(`ALTER TABLE users ADD CONSTRAINT nobody_named_eve CHECK (full_name <> 'Eve')`);
  await admin.query(
    `ALTER TABLE users ADD CONSTRAINT numbers CHECK (full_name !~ '^No' OR full_name::int > 0)`,
  );
  await admin.end();
});

afterAll(() => service.stop());

test('a defect of the service is a 500 without details', async () => {
  const body = { email: 'eve@example.com', full_name: 'Eve' };

  const response = await readResponse(await service.call('POST', USERS, body));

  expect(response).toEqual(refusal('internal_server_error', USERS));
  expect(JSON.stringify(response)).not.toMatch(/insert|constraint|nobody_named|users_|eve|\bat .*:\d+/i);
});

test('the log alone has the cause and the stack, without a value of the row', async () => {
  const headers = { 'x-request-id': 'defect-1' };
  await service.call('POST', USERS, { email: 'eve@example.com', full_name: 'Eve' }, { headers });

  const events = await service.events();
  const [event, ...others] = events.filter(({ request_id }) => request_id === 'defect-1');
  expect(others).toEqual([]);
  expect(event).toMatchObject({
    event: 'app_error',
    level: 'error',
    status_code: 500,
    path: USERS,
    cause: { code: '23514', stack: expect.stringMatching(/\bat /) },
  });
  expect(JSON.stringify(event)).not.toMatch(/eve@example\.com|"Eve"|insert into/i);
});

test('a value that only PostgreSQL refuses is 422, and the gap in validation is an error in the log', async () => {
  const headers = { 'x-request-id': 'gap-1' };
  // A word that is in no path of a project, because a stack contains the paths of its files.
  const word = randomBytes(8).toString('hex');
  const body = { email: `${word}@example.com`, full_name: `No ${word}` };
  const { status } = await readResponse(await service.call('POST', USERS, body, { headers }));

  const events = (await service.events()).filter(({ request_id }) => request_id === 'gap-1');
  expect(status).toBe(422);
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

test('the service continues, and the next request is served', async () => {
  const response = await readResponse(await service.call('POST', USERS, { email: 'ada@example.com' }));

  expect(response.status).toBe(201);
});
