import { mkdtempDisposableSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { packagesIn } from '../stage/packages.ts';

/** The packages in the bundles that a run has loaded, according to V8 and the source maps. */
async function packagesLoaded(SVC_OTEL_ENABLED: string): Promise<ReadonlySet<string>> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-loaded-'));
  const service = await forThisTest(startBuiltService, { SVC_OTEL_ENABLED, NODE_V8_COVERAGE: folder.path });
  await service.call('POST', '/api/v1/users/', { email: 'loaded@example.com' });
  service.signal('SIGTERM');
  await service.exited;
  const reports = readdirSync(folder.path).map((name) =>
    JSON.parse(readFileSync(join(folder.path, name), 'utf8')),
  );
  const urls: string[] = reports.flatMap(({ result }) => result.map(({ url }: { url: string }) => url));
  const files = urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url));
  return new Set(files.flatMap(packagesIn));
}

test('with tracing off nothing of OpenTelemetry is loaded', async () => {
  const packages = await packagesLoaded('false');

  expect([...packages]).toEqual(expect.arrayContaining(['kysely', 'pg']));
  expect([...packages].filter((name) => name.startsWith('@opentelemetry/'))).toEqual([]);
});

test('with tracing on it is loaded, which proves the measurement', async () => {
  const packages = await packagesLoaded('true');

  expect([...packages]).toEqual(
    expect.arrayContaining(['@opentelemetry/sdk-node', '@opentelemetry/sdk-trace']),
  );
});
