import { afterEach, expect, test } from 'vitest';
import { USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

let service: Awaited<ReturnType<typeof startService>>;

afterEach(() => service.stop());

test('every event of a request has its request_id, also with many concurrent requests', async () => {
  service = await startService();
  // Three kinds of requests reach the rule in different ways: with a statement, without one, and without a token.
  const kinds: readonly ((init: RequestInit, n: number) => Promise<Response>)[] = [
    (init, n) => service.call('POST', USERS, { email: `${n}@example.com` }, init),
    (init, n) => service.call('GET', `${USERS}unknown-${n}`, undefined, init),
    (init, n) => fetch(`${service.url}${USERS}${n}`, init),
    (init, n) => fetch(`${service.url}/nowhere/${n}`, init),
  ];
  const responses = await Promise.all(
    Array.from({ length: 400 }, async (_, n) => {
      const requestId = `request-${n}`;
      const response = await kinds[n % kinds.length]?.({ headers: { 'x-request-id': requestId } }, n);
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
  expect(logged.toSorted(byId)).toEqual(responses.toSorted(byId));
});

test('an event outside of a request has no request_id', async () => {
  service = await startService();

  const events = (await service.events()).filter(({ path }) => path !== '/ready');
  expect(events.map(({ event }) => event)).toContain('listening');
  expect(events.filter((event) => 'request_id' in event)).toEqual([]);
});
