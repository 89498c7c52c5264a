import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { SETTINGS } from '../../lib/settings/setting-table.ts';
import { startBuiltService } from '../stage/built-service.ts';
import { eventOf } from '../stage/events.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startFunction } from '../stage/lambda-function.ts';

const PACKAGES = join(import.meta.dirname, '../../node_modules');

const NAME = /\b(?:(?:OTEL|POWERTOOLS|AWS|_X_AMZN)_[A-Z][A-Z\d_]*)\b|(?<=key: ')[A-Z_]+(?=')/g;

/** The variables that the logger and the SDK of OpenTelemetry read themselves, found in their sources. */
const named = (pattern: string): readonly string[] => [
  ...new Set(
    globSync(pattern, { cwd: PACKAGES })
      .flatMap((file) => readFileSync(join(PACKAGES, file), 'utf8').match(NAME) ?? [])
      .filter((name) => !name.endsWith('_')),
  ),
];
const OF_LOGGER = named('{@aws-lambda-powertools/{logger,commons}/lib/esm,@aws/lambda-invoke-store}/**/*.js');
const OF_TELEMETRY = named('@opentelemetry/*/dist/**/*.mjs');

/** These variables with this value, except for the service's settings, which refuse other values. */
const allOf = (names: readonly string[], value: string): Variables =>
  Object.fromEntries(names.filter((name) => !(name in SETTINGS)).map((name) => [name, value]));

/** Starts with the variables, creates a user, has a request refused, and ends in order. */
async function run(variables: Variables) {
  // On a busy machine a session takes longer than a second, and `migration_failed` is logged.
  const service = await forThisTest(startBuiltService, { SVC_POSTGRES_POOL_TIMEOUT: '30', ...variables });
  const created = await service.call('POST', '/api/v1/users/', { email: 'ada@example.com' });
  const refused = await service.call('GET', '/nowhere');
  service.signal('SIGTERM');

  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect([created.status, refused.status]).toEqual([201, 404]);
  expect(service.errors()).toBe('');
  return service;
}

/** By level and name, in alphabetical order, because /ready may be 200 before the end of the migrations is logged. */
const EVENTS = [
  ['info', 'listening'],
  ['info', 'database_migrated'],
  ['info', 'user_created'],
  ['warning', 'app_error'],
  ['info', 'shutdown_drained'],
].sort();

test('the names that are known to be read are found', () => {
  expect(OF_LOGGER).toEqual(
    expect.arrayContaining([
      ...['POWERTOOLS_DEV', 'POWERTOOLS_LOG_LEVEL', 'POWERTOOLS_LOGGER_SAMPLE_RATE'],
      ...['AWS_LAMBDA_MAX_CONCURRENCY', 'LOG_LEVEL', 'ENVIRONMENT'],
    ]),
  );
  expect(OF_TELEMETRY).toEqual(expect.arrayContaining(['OTEL_LOG_LEVEL', 'OTEL_LOGS_EXPORTER']));
});

test.each(['true', '0.5', 'DEBUG', 'SILENT'])(
  'the variables that the logger reads itself have no effect, all set to %s',
  async (value) => {
    const { lines } = await run({ LOG_LEVEL: value, NODE_ENV: value, ...allOf(OF_LOGGER, value) });

    const logged = lines().filter(({ path }) => path !== '/ready');
    expect(logged.map(({ level, event }) => [level, event]).sort()).toEqual(EVENTS);
    for (const line of logged) expect(line).not.toHaveProperty('service');
  },
);

test.each(['true', 'SILENT'])('they have no effect in a function, all set to %s', async (value) => {
  const { environment } = await forThisTest(startBuiltService);
  const variables = { ...allOf(OF_LOGGER, value), ...environment };
  const instance = await forThisTest(startFunction, 'unmatched', variables);
  const { statusCode } = await instance.call(await eventOf('refusals/404-unknown-path'));

  expect(statusCode).toBe(404);
  expect(instance.printed()).toMatch(
    /^{"timestamp":"[^"]+","level":"warning","event":"app_error","request_id":"[^\n]+}\n$/,
  );
});

test.each(['true', 'console', 'none', '%'])(
  'with all variables of OpenTelemetry set to %s, standard output has only events and spans as JSON',
  async (value) => {
    const { lines } = await run({
      SVC_OTEL_ENABLED: 'true',
      OTEL_LOG_LEVEL: 'all',
      ...allOf(OF_TELEMETRY, value),
    });

    const logged = lines().filter(({ path, event }) => path !== '/ready' && event !== 'otel_diagnostic');
    const events = logged.filter(({ event }) => event !== undefined);
    expect(
      events
        .map(({ level, event }) => [level, event])
        .filter(([, event]) => event !== 'spans_printed')
        .sort(),
    ).toEqual(EVENTS);
    for (const line of logged)
      expect(line).toEqual(
        expect.objectContaining(line.event ? { level: line.level } : { kind: expect.anything() }),
      );
  },
);

test('messages of OpenTelemetry are logged at their level, if both levels allow it', async () => {
  const asked = { SVC_OTEL_ENABLED: 'true', SVC_LOG_LEVEL: 'debug' };
  const [unset, warn, all] = await Promise.all([
    run({ ...asked, OTEL_PROPAGATORS: 'unheard-of' }),
    run({ ...asked, OTEL_PROPAGATORS: 'unheard-of', OTEL_LOG_LEVEL: 'WARN' }),
    run({ ...asked, OTEL_LOG_LEVEL: 'debug' }),
  ]);

  expect(unset?.events('otel_diagnostic')).toEqual([]);
  expect(warn?.events('otel_diagnostic')).toEqual([
    {
      timestamp: expect.any(String),
      level: 'warning',
      event: 'otel_diagnostic',
      message: 'Propagator "unheard-of" requested through environment variable is unavailable.',
    },
  ]);
  expect(all?.events('otel_diagnostic')).toContainEqual(
    expect.objectContaining({ level: 'debug', message: expect.stringContaining('Registered a global') }),
  );
});
