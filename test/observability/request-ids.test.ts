import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

let service: Awaited<ReturnType<typeof startService>>;

afterEach(() => service.stop());

const users = '/api/v1/users/';

test('every event of a request carries its request_id, also when many run at once', async () => {
  service = await startService();
  // Each kind of request meets the same rule by another way: with a statement, without one, without a token.
  const kinds = [
    (headers: object, n: number) =>
      service.call('POST', users, { email: `${n}@example.com` }, { headers: { ...headers } }),
    (headers: object, n: number) =>
      service.call('GET', `${users}unknown-${n}`, undefined, { headers: { ...headers } }),
    (headers: object, n: number) => fetch(`${service.url}${users}${n}`, { headers: { ...headers } }),
    (headers: object, n: number) => fetch(`${service.url}/nowhere/${n}`, { headers: { ...headers } }),
  ];
  const answers = await Promise.all(
    Array.from({ length: 400 }, async (_, n) => {
      const requestId = `request-${n}`;
      const response = await kinds[n % kinds.length]?.({ 'x-request-id': requestId }, n);
      const body = (await response?.json()) as { id?: string; instance?: string };
      return { requestId, about: body.id ?? body.instance };
    }),
  );

  const events = (await service.events()).filter(
    ({ event, path }) => ['user_created', 'app_error'].includes(String(event)) && path !== '/ready',
  );
  const logged = events.map(({ request_id: requestId, user_id, path }) => ({
    requestId,
    about: user_id ?? path,
  }));
  const byId = (one: { requestId: unknown }, other: { requestId: unknown }) =>
    String(one.requestId).localeCompare(String(other.requestId));
  expect(logged.toSorted(byId)).toEqual(answers.toSorted(byId));
});

test('an event outside of a request carries none', async () => {
  service = await startService();

  const events = (await service.events()).filter(({ path }) => path !== '/ready');
  expect(events.map(({ event }) => event)).toContain('listening');
  expect(events.filter((event) => 'request_id' in event)).toEqual([]);
});

test('a refresh of the keys that a request has set off is an event of that request', async () => {
  service = await startService({ SVC_LOG_LEVEL: 'debug' });
  await sleep(2100);
  const token = await service.issuer.sign({}, { kid: 'unknown' });
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'refreshing' };
  await service.call('GET', users, undefined, { headers });

  const events = (await service.events()).filter(({ request_id }) => request_id === 'refreshing');
  expect(events.map(({ event }) => event)).toEqual(['jwks_refreshed', 'app_error']);
});

test('a later try in the background is an event of no request', async () => {
  service = await startService({ SVC_LOG_LEVEL: 'debug' });
  await sleep(2100);
  service.issuer.answer((_, response) => response.writeHead(500).end());
  const token = await service.issuer.sign({}, { kid: 'unknown' });
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'long-gone' };
  await service.call('GET', users, undefined, { headers });

  const later = await until('the next try', async () =>
    (await service.events()).find(({ failures }) => failures === 2),
  );
  expect(later).not.toHaveProperty('request_id');
});
