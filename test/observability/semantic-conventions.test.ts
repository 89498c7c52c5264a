import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { METRICS } from '../../lib/observability/metric-list.ts';
import { holdUsers } from '../stage/locks.ts';
import type { Attributes, ReceivedPoint, ReceivedSpan } from '../stage/otlp-receiver.ts';
import { USERS } from '../stage/responses.ts';
import { startTracedService, type TracedService, traceOfCaller } from '../stage/traced-service.ts';
import { until } from '../stage/until.ts';
import {
  CONVENTIONAL_METRICS,
  CONVENTIONAL_NUMBERS,
  CONVENTIONAL_SPANS,
  CONVENTIONAL_VALUES,
  VERSION,
} from './semantic-conventions.ts';

/** The names in the package, and whether each is deprecated. */
function registry(prefix: 'ATTR' | 'METRIC'): ReadonlyMap<string, { readonly isDeprecated: boolean }> {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve('@opentelemetry/semantic-conventions'));
  const files = ['stable_attributes', 'stable_metrics', 'experimental_attributes', 'experimental_metrics'];
  const declared = new RegExp(
    String.raw`/\*\*((?:(?!\*/)[^])*)\*/\s*declare const ${prefix}_\w+: "([^"]+)"`,
    'g',
  );
  return new Map(
    files
      .map((name) => readFileSync(join(folder, `${name}.d.mts`), 'utf8'))
      .flatMap((text) => [...text.matchAll(declared)])
      .map(([, comment = '', name = '']) => [name, { isDeprecated: comment.includes('@deprecated') }]),
  );
}

const isOfType = (name: string, value: unknown) =>
  typeof value === (CONVENTIONAL_NUMBERS.includes(name) ? 'number' : 'string');

/** Violations of the convention among these attributes. */
function faultsOf(
  attributes: Attributes,
  { required, others }: { readonly required: readonly string[]; readonly others: readonly string[] },
): readonly string[] {
  const names = Object.keys(attributes);
  return [
    ...required.filter((name) => !names.includes(name)).map((name) => `${name} is missing`),
    ...names
      .filter((name) => ![...required, ...others].includes(name))
      .map((name) => `${name} is not of this convention`),
    ...Object.entries(attributes).flatMap(([name, value]) => [
      ...(isOfType(name, value) ? [] : [`${name} is a ${typeof value}`]),
      ...((CONVENTIONAL_VALUES[name] ?? [value]).includes(value as never) ? [] : [`${name} is ${value}`]),
    ]),
  ];
}

describe('the table of conventions', () => {
  test('has the version of the package, and no name that is missing there or deprecated', () => {
    const require = createRequire(import.meta.url);
    const main = require.resolve('@opentelemetry/semantic-conventions');
    const { version } = JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8'));
    const known = { ATTR: registry('ATTR'), METRIC: registry('METRIC') };
    const spans = Object.values(CONVENTIONAL_SPANS).flatMap(({ required, others }) => [
      ...required,
      ...others,
    ]);
    const points = Object.values(CONVENTIONAL_METRICS).flatMap(({ required, others }) => [
      ...required,
      ...others,
    ]);
    const attributes = [...points, ...spans];
    const current = (prefix: 'ATTR' | 'METRIC', name: string) =>
      known[prefix].get(name)?.isDeprecated === false;

    expect(version).toBe(VERSION);
    expect(known.ATTR.size).toBeGreaterThan(500);
    expect(attributes.filter((name) => !current('ATTR', name))).toEqual([]);
    expect(Object.keys(CONVENTIONAL_METRICS).filter((name) => !current('METRIC', name))).toEqual([]);
  });

  test('has every metric of the service, except those in namespaces of its own', () => {
    const namespaces = new Set([...registry('METRIC').keys()].map((name) => name.split('.')[0]));
    const conventional = Object.keys(METRICS).filter((name) => namespaces.has(name.split('.')[0]));
    expect(conventional.sort()).toEqual(Object.keys(CONVENTIONAL_METRICS).sort());
  });
});

describe('the service follows the conventions', () => {
  let service: TracedService;
  let points: readonly ReceivedPoint[];
  let spans: readonly ReceivedSpan[];

  beforeAll(async () => {
    service = await startTracedService({
      OTEL_METRICS_EXPORTER: 'otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
      SVC_POSTGRES_STATEMENT_TIMEOUT: '1',
      // A short interval, so that the fetch of the keys is in a span.
      SVC_OAUTH_JWKS_REFRESH: '5',
    });
    const { receiver } = service;
    const { traceId, headers } = traceOfCaller();
    const https = { headers: { ...headers, 'x-forwarded-proto': 'https', 'user-agent': 'billing/1.0' } };
    await service.call('POST', USERS, { email: 'ada@example.com' }, https);
    await service.call('PROPFIND', USERS, undefined, { headers });
    await service.call('GET', '/nowhere', undefined, { headers });
    const table = await holdUsers(service.database);
    const failing = service.call('GET', USERS, undefined, https);
    await until('a request in flight', () =>
      receiver.points().some(({ metric, value }) => metric === 'http.server.active_requests' && value === 1),
    );
    await failing;
    await table.release();
    const made = () => new Set(receiver.points().map(({ metric }) => metric));
    await until('all metrics', () => Object.keys(METRICS).every((name) => made().has(name)));
    await receiver.untilTrace(traceId, 6);
    await until('a fetch of the keys', () =>
      receiver.spans().some(({ attributes }) => 'url.full' in attributes),
    );
    points = receiver.points();
    spans = receiver.spans();
    return () => service.remove();
  }, 30_000);

  test.each(Object.entries(CONVENTIONAL_METRICS))('in the metric %s', (name, convention) => {
    const found = points.filter(({ metric }) => metric === name);
    const kinds = new Set(found.map(({ instrument, unit }) => `${instrument} in ${unit}`));
    const described = METRICS[name as keyof typeof METRICS];

    expect(kinds).toEqual(new Set([`${convention.instrument} in ${convention.unit}`]));
    expect(described).toMatchObject({ kind: convention.instrument, unit: convention.unit });
    expect(found.flatMap(({ attributes }) => faultsOf(attributes, convention))).toEqual([]);
  });

  test.each<readonly [keyof typeof CONVENTIONAL_SPANS, ReceivedSpan['kind'], string, number]>([
    ['httpServer', 'SERVER', 'http.request.method', 4],
    ['httpClient', 'CLIENT', 'url.full', 1],
    ['databaseClient', 'CLIENT', 'db.system.name', 2],
  ])('in spans (%s)', (convention, kind, attribute, count) => {
    const found = spans.filter((span) => span.kind === kind && attribute in span.attributes);

    expect(found.length).toBeGreaterThanOrEqual(count);
    expect(found.flatMap(({ attributes }) => faultsOf(attributes, CONVENTIONAL_SPANS[convention]))).toEqual(
      [],
    );
    const known = Object.values(CONVENTIONAL_SPANS).flatMap(({ required }) => required[0]);
    expect(spans.filter(({ attributes }) => !known.some((name) => name in attributes))).toEqual([]);
  });

  test('in the resource', () => {
    const names = Object.keys(spans[0]?.resource ?? {});
    expect(names).toEqual(expect.arrayContaining(['service.name', 'service.version']));
    expect(names.filter((name) => registry('ATTR').get(name)?.isDeprecated !== false)).toEqual([]);
  });
});
