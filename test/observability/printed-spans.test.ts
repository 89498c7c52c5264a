import { expect, test } from 'vitest';
import { startBuiltService, traceOfCaller } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { until } from '../stage/until.ts';

const NANOSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/;

test('without an endpoint each span is a JSON object on a line of standard output, and one spans_printed is logged', async () => {
  const service = await forThisTest(startBuiltService, { SVC_OTEL_ENABLED: 'true' });
  const { traceId, spanId, headers } = traceOfCaller();
  const email = 'printed@example.com';
  await service.call('POST', '/api/v1/users/', { email }, { headers: { ...headers, 'user-agent': 'test' } });
  const spans = await until('both spans', () => {
    const found = service.spans().filter(({ trace_id }) => trace_id === traceId);
    return found.length === 2 && found;
  });
  const [event] = service.events('user_created');

  // Every line was parsed. The rest checks these two.
  const common = {
    trace_id: traceId,
    span_id: expect.stringMatching(/^[\da-f]{16}$/),
    start_time: expect.stringMatching(NANOSECONDS),
    end_time: expect.stringMatching(NANOSECONDS),
    status: 'UNSET',
    resource: expect.objectContaining({ 'service.name': 'user-management-service' }),
  };
  expect(spans).toEqual([
    {
      ...common,
      name: 'INSERT users',
      kind: 'CLIENT',
      parent_span_id: event?.span_id,
      attributes: expect.objectContaining({ 'db.operation.name': 'INSERT' }),
    },
    {
      ...common,
      name: 'POST /api/v1/users/',
      kind: 'SERVER',
      span_id: event?.span_id,
      parent_span_id: spanId,
      attributes: expect.objectContaining({ 'http.route': '/api/v1/users/' }),
    },
  ]);
  expect(event?.trace_id).toBe(traceId);
  expect(service.events('spans_printed')).toMatchObject([{ level: 'warning' }]);
});
