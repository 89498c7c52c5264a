import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isClient, isServer, startTracedService, traceOfCaller } from '../stage/built-service.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { USERS } from '../stage/responses.ts';
import { times, until } from '../stage/until.ts';

const service = forAllTests(() => startTracedService({ SVC_LOG_LEVEL: 'debug' }));

test('every event of a request has the ids of its span', async () => {
  const { traceId, headers } = traceOfCaller();
  const init = { headers: { ...headers, 'x-request-id': 'traced' } };
  await service.call('POST', USERS, { email: 'traced@example.com' }, init);
  await service.call('POST', USERS, { email: 'traced@example.com' }, init);
  const spans = await service.receiver.untilTrace(traceId, 4);
  const events = service.events().filter(({ request_id }) => request_id === 'traced');

  expect(events.map(({ event, trace_id }) => [event, trace_id])).toEqual([
    ['user_created', traceId],
    ['request_served', traceId],
    ['app_error', traceId],
    ['request_served', traceId],
  ]);
  const [first, second] = spans.filter(isServer).map(({ spanId }) => spanId);
  expect(events.map(({ span_id }) => span_id)).toEqual([first, first, second, second]);
});

test('every event has the ids of its own request, also with many concurrent requests', async () => {
  await times(200, (n) => {
    const { traceId, headers } = traceOfCaller();
    const init = { headers: { ...headers, 'x-request-id': `own-${traceId}` } };
    return n % 2 === 0
      ? service.call('POST', USERS, { email: `own-${n}@example.com` }, init)
      : service.call('GET', `${USERS}${n}`, undefined, init);
  });
  const events = await until('all events', () => {
    const own = service.events().filter(({ request_id }) => String(request_id).startsWith('own-'));
    return own.length >= 400 && own;
  });

  expect(events).toHaveLength(400);
  expect(events.filter(({ request_id, trace_id }) => request_id !== `own-${trace_id}`)).toEqual([]);
  expect(new Set(events.map(({ span_id }) => span_id)).size).toBe(200);
});

test('an event outside of a span has no trace_id and no span_id', () => {
  const outside = service.events().filter(({ request_id }) => request_id === undefined);

  expect(outside.map(({ event }) => event)).toContain('database_migrated');
  expect(outside.filter((event) => 'trace_id' in event || 'span_id' in event)).toEqual([]);
});

test('an unsampled traceparent of a caller is continued without spans, and logged', async () => {
  const { traceId, headers } = traceOfCaller({ sampled: false });
  const init = { headers: { ...headers, 'x-request-id': 'unsampled' } };
  await service.call('POST', USERS, { email: 'unsampled@example.com' }, init);
  await service.untilExported();

  expect(service.receiver.spans().filter((span) => span.traceId === traceId)).toEqual([]);
  const [event] = service.events().filter(({ request_id }) => request_id === 'unsampled');
  expect(event).toMatchObject({ trace_id: traceId, span_id: expect.stringMatching(/^[\da-f]{16}$/) });
});

test.each([
  '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
  'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
])('an invalid traceparent begins a new trace (%s)', async (traceparent) => {
  const agent = `new-trace-${traceparent.length}`;
  await service.call('GET', USERS, undefined, { headers: { traceparent, 'user-agent': agent } });
  const span = await until('the span', () =>
    service.receiver.spans().find(({ attributes }) => attributes['user_agent.original'] === agent),
  );

  expect(span.parentSpanId).toBeUndefined();
  expect(span.traceId).toMatch(/^(?!0{32}|4bf92f3577b34da6a3ce929d0e0e4736)[\da-f]{32}$/);
});

test('a key fetch that a request needs is a span of its trace, and a later one in the background has no trace of a request', async () => {
  await sleep(2100);
  const traceparents: unknown[] = [];
  service.issuer.answer((request, response) => {
    traceparents.push(request.headers.traceparent);
    response.writeHead(500).end();
  });
  const { traceId, headers } = traceOfCaller();
  const token = await service.issuer.sign({}, { kid: 'unknown' });
  const refused = await service.call('GET', USERS, undefined, {
    headers: { ...headers, authorization: `Bearer ${token}`, 'x-request-id': 'fetching' },
  });
  expect(refused.status).toBe(503);
  expect(traceparents).toEqual([expect.stringMatching(`^00-${traceId}-[\\da-f]{16}-01$`)]);
  const retry = await until('the next try', () => service.events().find(({ failures }) => failures === 2));
  service.issuer.answerNormally();
  await service.untilExported();
  const spans = service.receiver.spans().filter((span) => span.traceId === traceId);

  const own = service.events().filter(({ request_id }) => request_id === 'fetching');
  expect(own.map(({ event, trace_id }) => [event, trace_id])).toEqual([
    ['jwks_refresh_failed', traceId],
    ['app_error', traceId],
    ['request_served', traceId],
  ]);
  expect(retry).not.toHaveProperty('request_id');
  expect(retry).not.toHaveProperty('trace_id');
  const { jwksUri } = service.issuer;
  expect(spans.filter(isClient)).toMatchObject([
    {
      name: 'GET',
      parentSpanId: spans.find(isServer)?.spanId,
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 500,
        'url.full': jwksUri,
        'server.address': '127.0.0.1',
        'server.port': Number(new URL(jwksUri).port),
      },
    },
  ]);
});
