import { beforeEach, expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type BuiltService, isServer, startBuiltService, traceOfCaller } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startOtlpReceiver } from '../stage/otlp-receiver.ts';

let receiver: Awaited<ReturnType<typeof startOtlpReceiver>>;
let service: BuiltService;

beforeEach(async () => {
  receiver = await startOtlpReceiver();
  return receiver.stop;
});

/**
 * Starts with the variables, sends a request in a sampled trace, one in an unsampled trace and one without, and ends
 * in order.
 */
async function run(variables: Variables) {
  service = await forThisTest(startBuiltService, { ...receiver.variables, ...variables });
  const callers = [traceOfCaller(), traceOfCaller({ sampled: false })] as const;
  for (const { headers } of callers) await service.call('GET', '/api/v1/users/', undefined, { headers });
  await service.call('GET', '/api/v1/users/nobody');
  service.signal('SIGTERM');
  expect(await service.exited).toEqual({ code: 0, signal: null });
  return callers[0].traceId;
}

const spansOf = (traceId: string) => receiver.spans().filter((span) => span.traceId === traceId);

test('tracing is on by default in production', async () => {
  const traceId = await run({ SVC_ENV: 'production', SVC_OTEL_ENABLED: '' });

  expect(spansOf(traceId)[0]?.resource).toMatchObject({
    'service.name': 'user-management-service',
    'service.version': packageJson.version,
  });
});

const often = { OTEL_METRICS_EXPORTER: 'otlp', OTEL_METRIC_EXPORT_INTERVAL: '100' };

test.each<[string, Variables]>([
  ['by default in development', { SVC_ENV: 'development', SVC_OTEL_ENABLED: '' }],
  ['with OTEL_SDK_DISABLED', { OTEL_SDK_DISABLED: 'true' }],
  ['with SVC_OTEL_ENABLED=false', { ...often, SVC_OTEL_ENABLED: 'false', SVC_LOG_LEVEL: 'debug' }],
])('all signals are off %s, and events have no trace ids', async (_case, variables) => {
  await run(variables);

  expect(receiver.received).toEqual([]);
  expect(service.printed()).not.toMatch(/"kind":|trace_id|span_id/);
});

test('by default spans are sent in protobuf to the path of OTLP, with the headers, name and attributes of the variables', async () => {
  await run({
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=secret,x-tenant=users',
    OTEL_SERVICE_NAME: 'users-blue',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging,service.version=1.2.3',
  });

  expect(receiver.received.length).toBeGreaterThan(0);
  for (const { path, headers, body } of receiver.received) {
    expect(path).toBe('/v1/traces');
    expect(headers).toMatchObject({
      'content-type': 'application/x-protobuf',
      'api-key': 'secret',
      'x-tenant': 'users',
    });
    for (const text of ['users-blue', 'staging', '1.2.3', 'GET /api/v1/users/'])
      expect(body.toString('latin1')).toContain(text);
  }
});

test('OTEL_EXPORTER_OTLP_PROTOCOL=http/json sends spans in JSON', async () => {
  const traceId = await run({});

  expect(new Set(receiver.received.map(({ headers }) => headers['content-type']))).toEqual(
    new Set(['application/json']),
  );
  expect(spansOf(traceId).find(isServer)).toMatchObject({
    name: 'GET /api/v1/users/',
    attributes: { 'http.route': '/api/v1/users/', 'http.response.status_code': 200 },
  });
});

test('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is the complete URL for spans', async () => {
  const address = `${receiver.endpoint}/custom/path`;
  await run({ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address });

  expect(new Set(receiver.received.map(({ path }) => path))).toEqual(new Set(['/custom/path']));
  expect(service.spans()).toEqual([]);
});

test('OTEL_TRACES_SAMPLER=always_off samples nothing, and events still have their trace_id', async () => {
  await run({ OTEL_TRACES_SAMPLER: 'always_off' });

  expect(receiver.spans()).toEqual([]);
  const [event] = service.events('app_error').filter(({ path }) => path !== '/ready');
  expect(event).toMatchObject({ status_code: 422, trace_id: expect.stringMatching(/^[\da-f]{32}$/) });
});

test('OTEL_TRACES_SAMPLER=parentbased_traceidratio uses the decision of the caller if there is one', async () => {
  const traceId = await run({
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
  });

  const incoming = receiver.spans().filter(isServer);
  expect(incoming.map((span) => span.traceId)).toEqual([traceId]);
});

test('OTEL_PROPAGATORS=none begins a new trace for every request', async () => {
  const traceId = await run({ OTEL_PROPAGATORS: 'none' });

  expect(receiver.spans().filter(isServer)).toHaveLength(3);
  expect(spansOf(traceId)).toEqual([]);
});

test.each(['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT'])(
  '%s truncates longer values of requests and of statements',
  async (name) => {
    const traceId = await run({ [name]: '8' });

    const cut = spansOf(traceId).map(
      ({ attributes }) => attributes['url.path'] ?? attributes['db.query.text'],
    );
    expect(cut.sort()).toEqual(['/api/v1/', expect.stringMatching(/^(select|with) /)]);
    expect(cut.map((text) => String(text).length)).toEqual([8, 8]);
  },
);

test('OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT leaves out further attributes of requests and of statements', async () => {
  const traceId = await run({ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '3' });

  expect(spansOf(traceId).map(({ attributes }) => Object.keys(attributes).length)).toEqual([3, 3]);
});
