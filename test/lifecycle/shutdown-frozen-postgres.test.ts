import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { startBuiltHost } from '../stage/built-service.ts';
import { callerOf, untilReady } from '../stage/caller.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { expectEndInOrder } from '../stage/end-in-order.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startOtlpReceiver } from '../stage/otlp-receiver.ts';
import { environmentOf } from '../stage/service.ts';
import { drainEvents } from '../stage/shutdown.ts';
import { startIssuer } from '../stage/tokens.ts';
import { times } from '../stage/until.ts';

describe('a frozen PostgreSQL', () => {
  const postgres = forAllTests(startDisposablePostgres);
  const issuer = forAllTests(startIssuer);

  /** Starts a host with open connections in its pool. */
  async function start(variables: Variables = {}) {
    const host = await forThisTest(startBuiltHost, {
      ...environmentOf(postgres, issuer),
      SVC_SHUTDOWN_DRAIN_TIMEOUT: '1',
      ...variables,
    });
    onTestFinished(postgres.thaw);
    const url = await host.untilListening();
    await untilReady(url);
    const call = callerOf(url, issuer);
    await times(5, () => call('GET', '/api/v1/users/'));
    return { host, call };
  }

  test('does not delay the exit of an idle process', async () => {
    const { host } = await start();
    await postgres.freeze();
    await expectEndInOrder(host, 2);

    expect(drainEvents(host)).toMatchObject([{ event: 'shutdown_drained' }]);
    expect(host.errors()).toBe('');
  });

  test('does not delay the exit while connections to it are being opened', async () => {
    const { host, call } = await start({
      SVC_POSTGRES_POOL_TIMEOUT: '30',
      SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.5',
    });
    await postgres.freeze();
    const hung = times(15, () => call('GET', '/api/v1/users/'));
    await sleep(300);
    await expectEndInOrder(host, 2.5);

    expect((await hung).map(({ status }) => status)).toEqual(Array(15).fill(503));
  });

  test('delays the exit by the drain at most, with requests in flight and a collector that hangs as well', async () => {
    const receiver = await forThisTest(startOtlpReceiver);
    receiver.answer(() => {});
    const { host, call } = await start({
      SVC_OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_METRICS_EXPORTER: 'otlp',
    });
    await postgres.freeze();
    const hung = times(8, () => call('GET', '/api/v1/users/'));
    await sleep(300);
    await expectEndInOrder(host, 3);

    expect((await hung).map(({ status }) => status)).toEqual(Array(8).fill(503));
    expect(drainEvents(host)).toMatchObject([{ event: 'shutdown_drain_timeout', in_flight: 8 }]);
    expect(host.errors()).toBe('');
  });
});
