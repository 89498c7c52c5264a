import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { startBuiltHost, startBuiltService } from '../stage/built-service.ts';
import { expectEndInOrder } from '../stage/end-in-order.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { startSurroundings } from '../stage/service.ts';
import { drainEvents, endedBy } from '../stage/shutdown.ts';
import { startIssuer } from '../stage/tokens.ts';
import { BUSY_S, until } from '../stage/until.ts';

/** Starts a host without waiting until it is ready. */
async function start(variables: Readonly<Record<string, string>>) {
  const { environment } = await forThisTest(startSurroundings);
  return forThisTest(startBuiltHost, { ...environment, ...variables });
}

test('a hung query does not delay the exit, and is cancelled in PostgreSQL', async () => {
  const service = await forThisTest(startBuiltService, {
    SVC_POSTGRES_STATEMENT_TIMEOUT: '60',
    SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.5',
  });
  await service.database.query(`
    CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
    CREATE TRIGGER hang BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION hang()
  `);
  const hung = service.call('POST', '/api/v1/users/', { email: 'hung@example.com' });
  await untilUnderWay(1, service.database);
  await expectEndInOrder(service, 2.5);

  expect((await hung).status).toBe(503);
  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drain_timeout', in_flight: 1 }]);
  await untilUnderWay(0, service.database, 3);
});

test('a PostgreSQL that was never available does not delay the exit', async () => {
  const host = await start({
    SVC_POSTGRES_HOST: '127.0.0.1',
    SVC_POSTGRES_PORT: String(await freePort()),
  });
  await host.untilEvent('migration_failed');
  await expectEndInOrder(host, 2);

  expect(drainEvents(host)).toMatchObject([{ event: 'shutdown_drained' }]);
  expect(host.errors()).toBe('');
});

test('migrations that wait for another instance do not delay the exit', async () => {
  const { database, environment } = await forThisTest(startSurroundings);
  // The lock of the migrations.
  await forThisTest(hold, database, 'SELECT pg_advisory_lock(6083215794301857261)');
  const host = await forThisTest(startBuiltHost, environment);
  await host.untilListening();
  const waiting =
    "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid() AND datname = current_database()";
  await until('the migrations wait', async () => (await database.query(waiting)).length > 0);
  await expectEndInOrder(host, 2);

  expect(host.events('database_migrated')).toEqual([]);
  expect(drainEvents(host)).toMatchObject([{ event: 'shutdown_drained' }]);
});

test('an identity provider that never responds does not delay the exit', async () => {
  const provider = await forThisTest(startIssuer);
  provider.answer(() => {});
  const host = await start({ SVC_OAUTH_JWKS_URI: provider.jwksUri });
  await host.untilEvent('database_migrated');
  await until('the keys are fetched', () => provider.fetches > 0, { every: 5 });
  // A slow start may take until the next one.
  const { fetches } = provider;
  await expectEndInOrder(host, 2);

  expect(provider.fetches).toBe(fetches);
  expect(drainEvents(host)).toMatchObject([{ event: 'shutdown_drained' }]);
});

test('a signal before the process listens ends it in order', async () => {
  // The signal is sent as soon as a handler is registered, before the host is loaded.
  const sendEarly = `process.on('newListener', (name) => {
    if (name === 'SIGTERM') setImmediate(() => process.kill(process.pid, 'SIGTERM'));
  });`;
  const preload = `data:text/javascript,${encodeURIComponent(sendEarly)}`;
  const host = await start({ NODE_OPTIONS: `--import=${preload}` });

  expect(await host.exited).toEqual({ code: 0, signal: null });
  expect(drainEvents(host)).toMatchObject([{ event: 'shutdown_drained' }]);
  expect(host.errors()).toBe('');
});

test('a signal at any moment of the start ends the process, in order if its handler is registered', async () => {
  const { environment } = await forThisTest(startSurroundings);
  for (const delay of [0, 30, 60, 100, 150, 200, 300, 450]) {
    const host = await forThisTest(startBuiltHost, environment);
    await sleep(delay);
    const { seconds, code, signal } = await endedBy('SIGTERM', host);

    expect(seconds).toBeLessThan(3 + BUSY_S);
    expect(host.errors()).toBe('');
    // Without a handler the signal ends the process. It cannot have served a request by then.
    if (signal === null) expect([code, drainEvents(host).length]).toEqual([0, 1]);
    else expect([signal, host.printed()]).toEqual(['SIGTERM', '']);
  }
});
