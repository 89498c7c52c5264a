import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archive } from '../../infra/archive.ts';
import { functions } from '../../infra/functions.ts';
import type { Variables } from '../../lib/settings.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { archiveOf, startFunction } from '../stage/lambda-function.ts';
import { environmentOf } from '../stage/service.ts';

const LIMIT = 400_000;

const deployed = (await functions()).map(({ operationId }) => operationId);

describe.each(deployed)('the bundle of %s', (operationId) => {
  test('has at most 400 KB', async () => {
    const bundle = archiveOf(operationId).replace('.zip', '/index.mjs');

    expect((await stat(bundle)).size).toBeLessThanOrEqual(LIMIT);
  });

  test('makes the same archive whenever it is packed', async () => {
    const file = archiveOf(operationId);

    expect(archive(file.replace('.zip', '')).equals(await readFile(file))).toBe(true);
  });
});

describe('what a function loads', () => {
  let stage: Awaited<ReturnType<typeof startComposition>>;
  let folder: string;

  beforeAll(async () => {
    stage = await startComposition();
    folder = mkdtempSync(join(tmpdir(), 'user-management-loaded-'));
  });

  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await stage.stop();
  });

  /** The files of its own that a function has loaded once it has answered a request. */
  async function loadedWith(variables: Variables): Promise<readonly string[]> {
    const list = join(folder, JSON.stringify(variables).replaceAll(/\W/g, ''));
    appendFileSync(list, '');
    const environment = { ...environmentOf(stage.database, stage.issuer), ...variables, LOADED: list };
    const recorder = pathToFileURL(join(import.meta.dirname, 'recorder.mjs')).href;
    const instance = await startFunction('getUser', environment, ['--import', recorder]);
    const event = await eventOf('getUser', { token: await stage.issuer.sign() });
    expect((await instance.call(event)).statusCode).toBe(404);
    await instance.stop();
    return readFileSync(list, 'utf8')
      .split('\n')
      .filter((url) => dirname(url).includes('user-management-function-'))
      .map(nameOf);
  }

  const nameOf = (url: string) => basename(url).replace(/-[A-Z\d]{8}\.mjs$/, '');
  const TELEMETRY = 'telemetry';
  const X_RAY = 'esm';

  test('holds nothing of OpenTelemetry and nothing of X-Ray when both are off', async () => {
    const loaded = await loadedWith({ SVC_OTEL_ENABLED: 'false' });

    expect(loaded).toContain('index.mjs');
    expect(loaded.filter((name) => name !== 'index.mjs' && name !== 'chunk')).toEqual([]);
  });

  test('holds OpenTelemetry when that is on, and not X-Ray', async () => {
    const loaded = await loadedWith({ SVC_OTEL_ENABLED: 'true', POWERTOOLS_TRACE_ENABLED: 'true' });

    expect(loaded).toContain(TELEMETRY);
    expect(loaded).not.toContain(X_RAY);
  });

  test('holds X-Ray when OpenTelemetry is off and that is on', async () => {
    const loaded = await loadedWith({ SVC_OTEL_ENABLED: 'false', POWERTOOLS_TRACE_ENABLED: 'true' });

    expect(loaded).toContain(X_RAY);
    expect(loaded).not.toContain(TELEMETRY);
  });
});
