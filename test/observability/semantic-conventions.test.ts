import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { METRICS } from '../../lib/observability/metric-list.ts';
import { startTracedService, traceOfCaller } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { USERS } from '../stage/responses.ts';
import { until } from '../stage/until.ts';

/**
 * Instruments and units by name, from https://github.com/open-telemetry/semantic-conventions (`model/http`,
 * `model/database`, `model/process`, `model/nodejs`). The package has only names, so a new version of it requires
 * a new reading of the source.
 */
const VERSION = '1.45.0';
const CONVENTIONAL_METRICS = {
  'http.server.request.duration': { kind: 'histogram', unit: 's' },
  'http.server.active_requests': { kind: 'up-down counter', unit: '{request}' },
  'http.client.request.duration': { kind: 'histogram', unit: 's' },
  'db.client.connection.count': { kind: 'up-down counter', unit: '{connection}' },
  'db.client.connection.pending_requests': { kind: 'up-down counter', unit: '{request}' },
  'process.memory.usage': { kind: 'up-down counter', unit: 'By' },
  'nodejs.eventloop.delay.p99': { kind: 'gauge', unit: 's' },
};

const require = createRequire(import.meta.url);
const folder = dirname(require.resolve('@opentelemetry/semantic-conventions'));

/** The names in the package that are not deprecated. */
function currentNames(prefix: 'ATTR' | 'METRIC'): readonly string[] {
  const declared = new RegExp(
    String.raw`/\*\*((?:(?!\*/)[^])*)\*/\s*declare const ${prefix}_\w+: "([^"]+)"`,
    'g',
  );
  return ['stable_attributes', 'stable_metrics', 'experimental_attributes', 'experimental_metrics']
    .map((name) => readFileSync(join(folder, `${name}.d.mts`), 'utf8'))
    .flatMap((text) => [...text.matchAll(declared)])
    .filter(([, comment = '']) => !comment.includes('@deprecated'))
    .map(([, , name = '']) => name);
}

test('metrics in the namespaces of the conventions have their names, instruments and units', () => {
  const { version } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8'));
  const names = currentNames('METRIC');
  const namespaces = new Set(names.map((name) => name.split('.')[0]));
  const conventional = Object.entries(METRICS).filter(([name]) => namespaces.has(name.split('.')[0]));

  expect(version).toBe(VERSION);
  expect(names).toEqual(expect.arrayContaining(Object.keys(CONVENTIONAL_METRICS)));
  expect(Object.fromEntries(conventional.map(([name, { kind, unit }]) => [name, { kind, unit }]))).toEqual(
    CONVENTIONAL_METRICS,
  );
});

test('all attributes of spans, metrics of HTTP and PostgreSQL and the resource are names of the conventions', async () => {
  const service = await forThisTest(startTracedService, {
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_METRIC_EXPORT_INTERVAL: '100',
    // A short interval, so that the fetch of the keys is in a span.
    SVC_OAUTH_JWKS_REFRESH: '5',
  });
  const { receiver } = service;
  const { traceId, headers } = traceOfCaller();
  await service.call('POST', USERS, { email: 'ada@example.com' }, { headers });
  await service.call('PROPFIND', USERS, undefined, { headers });
  await receiver.untilTrace(traceId, 3);
  await until('a fetch of the keys', () =>
    receiver.spans().some(({ attributes }) => 'url.full' in attributes),
  );
  await until('all metrics', () =>
    Object.keys(CONVENTIONAL_METRICS).every((name) =>
      receiver.points().some(({ metric }) => metric === name),
    ),
  );

  const described = [
    ...receiver.points().filter(({ metric }) => metric in CONVENTIONAL_METRICS),
    ...receiver.spans(),
  ].map(({ attributes }) => attributes);
  const used = [...described, receiver.spans()[0]?.resource ?? {}].flatMap(Object.keys);
  const known = new Set(currentNames('ATTR'));
  expect(used).toEqual(
    expect.arrayContaining(['http.route', 'db.query.text', 'url.full', 'service.version']),
  );
  expect(used.filter((name) => !known.has(name))).toEqual([]);
  expect(known.has('http.method')).toBe(false);
  expect(receiver.points().find(({ metric }) => metric === 'http.server.request.duration')).toMatchObject({
    attributes: { 'http.request.method': 'POST', 'url.scheme': 'http' },
  });
});
