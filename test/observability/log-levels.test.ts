import { expect, test } from 'vitest';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startService } from '../stage/service.ts';

/** One event per level: a refresh, a user, a refusal, an unavailable database. */
const EVENTS = [
  ['jwks_refreshed', 'debug'],
  ['user_created', 'info'],
  ['app_error', 'warning'],
  ['app_error', 'error'],
] as const;

test.each([
  ['debug', EVENTS],
  ['info', EVENTS.slice(1)],
  ['WARNING', EVENTS.slice(2)],
  ['error', EVENTS.slice(3)],
])('with SVC_LOG_LEVEL=%s only events of this level and above are logged', async (level, expected) => {
  const service = await forThisTest(startService, { SVC_LOG_LEVEL: level });
  await service.call('POST', '/api/v1/users/', { email: 'level@example.com' });
  await service.call('GET', '/nowhere');
  await service.database.drop();
  const unavailable = await service.call('GET', '/api/v1/users/');
  expect(unavailable.status).toBe(503);

  const logged = (await service.events()).map(({ event, level }) => `${event} ${level}`);
  const known = EVENTS.map((event) => event.join(' '));
  expect(known.filter((event) => logged.includes(event))).toEqual(expected.map((event) => event.join(' ')));
});
