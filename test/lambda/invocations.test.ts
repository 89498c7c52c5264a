import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { administratorOf } from '../stage/administration.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startFunction } from '../stage/lambda-function.ts';
import { libpqEnvironment } from '../stage/libpq-environment.ts';
import { holdUsers } from '../stage/locks.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { startOtlpReceiver } from '../stage/otlp-receiver.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { refusal, responseFromResult } from '../stage/responses.ts';
import { timed } from '../stage/until.ts';

const INSTANCE = '/api/v1/users/0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
/** AWS Lambda's clock does not jump. */
const AFTER_THE_JUMP = { seconds: 660 };
const CLOCK = pathToFileURL(join(import.meta.dirname, 'clock.mjs')).href;

const stage = forAllTests(() => startComposition());
const administrator = administratorOf(stage);

/** Starts an instance of getUser. `read` requests a user that does not exist. */
async function start(variables: Variables = {}, nodeOptions: readonly string[] = []) {
  const environment = { ...stage.environment, ...variables };
  const started = await forThisTest(startFunction, 'getUser', environment, nodeOptions);
  const event = await eventOf('getUser', { token: await stage.issuer.sign({ exp: 4_000_000_000 }) });
  return { ...started, read: async (options = {}) => responseFromResult(await started.call(event, options)) };
}

/** The same, with a collector of its spans. */
async function startTraced() {
  const collector = await forThisTest(startOtlpReceiver);
  return { ...(await start(collector.variables)), collector };
}

/** The same, with a collector that never responds. */
async function startWithHangingCollector() {
  const traced = await startTraced();
  traced.collector.answer(() => {});
  return traced;
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
    const { read } = await startWithHangingCollector();
    await read();
    const { value, milliseconds } = await timed(read());

    expect(value.status).toBe(404);
    expect(milliseconds).toBeLessThan(3000);
  });

  test.each([
    ['', start],
    [' also with a hanging collector', startWithHangingCollector],
  ])(
    'responds before its time limit%s, and handles the next invocation',
    async (_collector, startInstance) => {
      const { read } = await startInstance();
      await read();
      const table = await holdUsers(stage.database);
      const late = await timed(read({ seconds: 1.5 }));
      await table.release();

      expect(late.value).toEqual(refusal('service_unavailable_error', INSTANCE));
      expect(late.milliseconds).toBeLessThan(1500);
      expect((await read()).status).toBe(404);
    },
  );

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
    const { database, admin } = await emptyDatabase();
    const { read } = await start({ SVC_POSTGRES_DB: database.name });

    await read();

    expect(await admin.query("SELECT FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
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
    const proxy = await forThisTest(startProxy, stage.database);
    const { read, freeze, thaw, signal } = await start(addressOf(proxy), ['--import', CLOCK]);
    await read();
    expect(proxy.accepted).toBe(1);
    signal('SIGUSR2');
    await freeze();

    const response = read(AFTER_THE_JUMP);
    thaw();

    expect((await response).status).toBe(404);
    expect(proxy.accepted).toBe(2);
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

test('with invalid settings every invocation fails with all faults and without values', async () => {
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
