import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Variables } from '../../lib/settings/settings.ts';
import { administer, administratorOf } from '../stage/administration.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { startFunction } from '../stage/lambda-function.ts';
import { libpqEnvironment } from '../stage/libpq-environment.ts';
import { holdUsers } from '../stage/locks.ts';
import { startOtlpReceiver } from '../stage/otlp-receiver.ts';
import { createDatabase } from '../stage/postgres.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { refusal, responseFromResult } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';

const INSTANCE = '/api/v1/users/0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
/** AWS Lambda's clock does not jump. */
const AFTER_THE_JUMP = { seconds: 660 };
const CLOCK = pathToFileURL(join(import.meta.dirname, 'clock.mjs')).href;

const stage = forAllTests(() => startComposition());
const administrator = administratorOf(stage);

/** Starts an instance of getUser. `read` requests a user that does not exist. */
async function start(variables: Variables = {}, nodeOptions: readonly string[] = []) {
  const environment = { ...environmentOf(stage.database, stage.issuer), ...variables };
  const started = await startFunction('getUser', environment, nodeOptions);
  onTestFinished(started.stop);
  const event = await eventOf('getUser', { token: await stage.issuer.sign({ exp: 4_000_000_000 }) });
  return { ...started, read: async (options = {}) => responseFromResult(await started.call(event, options)) };
}

/** The same, with a collector of its spans. */
async function startTraced() {
  const collector = await startOtlpReceiver();
  onTestFinished(collector.stop);
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  return { ...(await start({ SVC_OTEL_ENABLED: 'true', ...endpoint })), collector };
}

describe('an instance', () => {
  test('has one connection', async () => {
    const { read } = await start();
    for (let times = 0; times < 3; times += 1) await read();

    expect(await administrator.countSessions()).toBe(1);
  });

  test('has written its log when its response is sent', async () => {
    const { read, lines } = await start();

    const { headers } = await read();

    const request_id = headers['x-request-id'];
    expect(lines()).toContainEqual(
      expect.objectContaining({ event: 'app_error', status_code: 404, request_id }),
    );
  });

  test('has printed its spans when its response is sent', async () => {
    const { read, lines } = await start({ SVC_OTEL_ENABLED: 'true' });

    await read();

    const names = lines().map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['GET /api/v1/users/{user_id}', 'SELECT users']));
  });

  test('has sent its spans to the collector when its response is sent', async () => {
    const { read, collector } = await startTraced();

    await read();
    const names = collector.spans().map(({ name }) => name);

    expect(names).toEqual(expect.arrayContaining(['GET /api/v1/users/{user_id}', 'SELECT users']));
  });

  test('waits about a second at most for a hanging collector', async () => {
    const { read, collector } = await startTraced();
    collector.answer(() => {});
    await read();

    const begun = performance.now();
    const { status } = await read();
    const waited = performance.now() - begun;

    expect(status).toBe(404);
    expect(waited).toBeLessThan(3000);
  });

  test('responds before its time limit, and handles the next invocation', async () => {
    const { read } = await start();
    await read();
    const table = await holdUsers(stage.database);

    const begun = performance.now();
    const late = await read({ seconds: 1.5 });
    const waited = performance.now() - begun;
    await table.release();

    expect(late).toEqual(refusal('service_unavailable_error', INSTANCE));
    expect(waited).toBeLessThan(1500);
    expect((await read()).status).toBe(404);
  });

  test('responds before its time limit also with a hanging collector', async () => {
    const { read, collector } = await startTraced();
    collector.answer(() => {});
    await read();
    const table = await holdUsers(stage.database);

    const begun = performance.now();
    const { status } = await read({ seconds: 1.5 });
    const waited = performance.now() - begun;
    await table.release();

    expect(status).toBe(503);
    expect(waited).toBeLessThan(1500);
  });

  test('warns of an unknown setting', async () => {
    const { read, lines } = await start({ SVC_POSTGRES_HSOT: 'db' });

    await read();

    expect(lines()).toContainEqual(
      expect.objectContaining({ event: 'unknown_setting', level: 'warning', name: 'SVC_POSTGRES_HSOT' }),
    );
  });

  test('warns once, at its cold start, that PostgreSQL is used without TLS', async () => {
    const { read, lines } = await start({ SVC_POSTGRES_HOST: `${stage.database.host},db.invalid` });

    for (let times = 0; times < 2; times += 1) await read();

    expect(lines().filter(({ event }) => event === 'postgres_tls_off')).toEqual([
      { timestamp: expect.any(String), level: 'warning', event: 'postgres_tls_off', hosts: ['db.invalid'] },
    ]);
  });

  test('ignores the variables of libpq', async () => {
    const { read } = await start(libpqEnvironment);

    expect((await read()).status).toBe(404);
  });

  test('runs no migrations', async () => {
    const database = await createDatabase();
    const { read } = await start({ SVC_POSTGRES_DB: database.name });

    await read();
    const within = await administer(database.name);
    const tables = await within.query("SELECT FROM pg_tables WHERE schemaname = 'public'");
    await within.end();
    await database.drop();

    expect(tables).toEqual([]);
  });
});

describe('after a freeze', () => {
  test('the first request gets a response, although PostgreSQL has closed the connection', async () => {
    const { read, freeze, thaw } = await start();
    await read();
    await freeze();
    expect(await administrator.terminate()).toBe(1);
    // A freeze is longer than the end of a session takes.
    await sleep(200);

    const response = read();
    thaw();

    expect(await response).toEqual(refusal('not_found_error', INSTANCE));
  });

  test('no connection is used that was idle for long, because it may be lost unnoticed', async () => {
    const proxy = await startProxy(stage.database);
    const { read, freeze, thaw, signal } = await start(addressOf(proxy), ['--import', CLOCK]);
    await read();
    expect(proxy.accepted).toBe(1);
    signal('SIGUSR2');
    await freeze();

    const response = read(AFTER_THE_JUMP);
    thaw();

    expect((await response).status).toBe(404);
    expect(proxy.accepted).toBe(2);
    await proxy.stop();
  });

  test('a token is refused at once if its key was removed meanwhile', async () => {
    const { read, freeze, thaw, signal } = await start({}, ['--import', CLOCK]);
    expect((await read()).status).toBe(404);
    signal('SIGUSR2');
    await freeze();
    await stage.issuer.rotate();

    const response = read(AFTER_THE_JUMP);
    thaw();

    expect(await response).toEqual(refusal('unauthorized_error', INSTANCE));
  });
});

describe('with invalid settings', () => {
  test('every invocation fails with all faults and without values', async () => {
    const wrong = {
      SVC_OAUTH_ISSUER: '',
      SVC_BODY_LIMIT: 'unlimited',
      SVC_POSTGRES_PASSWORD: 'hunter2',
      SVC_ENV: 'hunter2',
    };
    const { invoke, printed, errors } = await start(wrong);

    for (const outcome of [await invoke({}), await invoke({})]) {
      expect(outcome).toMatchObject({ error: { errorType: 'SettingsError' } });
      const message = 'error' in outcome ? outcome.error.errorMessage : '';
      expect(message).toMatch(
        /SVC_ENV is not valid.*\n.*SVC_BODY_LIMIT is not valid.*\n.*SVC_OAUTH_ISSUER is required/,
      );
    }
    expect(printed() + errors()).not.toMatch(/hunter2|unlimited/);
  });
});
