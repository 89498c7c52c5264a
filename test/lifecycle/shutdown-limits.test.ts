import { expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { startBuiltService } from '../stage/built-service.ts';
import { connectAndSend, requestText } from '../stage/connection.ts';
import { expectEndInOrder } from '../stage/end-in-order.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { refusal, TIMESTAMP, USERS } from '../stage/responses.ts';
import { drainEvents, endedBy } from '../stage/shutdown.ts';
import { startIssuer } from '../stage/tokens.ts';
import { BUSY_S, times, until } from '../stage/until.ts';

const common = { timestamp: expect.stringMatching(TIMESTAMP) };
const drained = { ...common, level: 'info', event: 'shutdown_drained' };
const timedOut = { ...common, level: 'warning', event: 'shutdown_drain_timeout', in_flight: 3 };

/** Holds three requests at a locked table and stops the service. Resolves with the service, its end and the three responses. */
async function endWithThreeHeld(variables: Variables) {
  const service = await forThisTest(startBuiltService, { ...PATIENT, ...variables });
  const lock = await holdUsers(service.database);
  const held = times(3, () => service.call('GET', USERS));
  await untilUnderWay(2, service.database);
  const ended = await endedBy('SIGTERM', service);
  const responses = await held;
  // The table is still locked, so only the shutdown can have stopped them.
  await untilUnderWay(0, service.database, 3);
  await lock.release();
  return { ...ended, service, responses };
}

test.each<readonly [string, Variables, readonly [number, number], unknown]>([
  [
    'after SVC_SHUTDOWN_DRAIN_TIMEOUT remaining requests are counted, cancelled, and stopped in PostgreSQL',
    { SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.7' },
    [0.7, 2.7],
    timedOut,
  ],
  [
    'SVC_SHUTDOWN_DRAIN_TIMEOUT=0 ends the drain at once',
    { SVC_SHUTDOWN_DRAIN_TIMEOUT: '0' },
    [0, 2],
    timedOut,
  ],
  [
    'SVC_SHUTDOWN_DRAIN_TIMEOUT=-1 ends the drain at once',
    { SVC_SHUTDOWN_DRAIN_TIMEOUT: '-1' },
    [0, 2],
    timedOut,
  ],
  [
    'a shorter SVC_SHUTDOWN_SERVER_TIMEOUT cancels the requests, and the drain is reported as complete',
    { SVC_SHUTDOWN_SERVER_TIMEOUT: '0.7', SVC_SHUTDOWN_DRAIN_TIMEOUT: '20' },
    [0.7, 2.7],
    drained,
  ],
  [
    'a longer SVC_SHUTDOWN_SERVER_TIMEOUT has no effect',
    { SVC_SHUTDOWN_SERVER_TIMEOUT: '10', SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.7' },
    [0.7, 2.7],
    timedOut,
  ],
  [
    'SVC_SHUTDOWN_SERVER_TIMEOUT begins with the drain, after the delay',
    { SVC_SHUTDOWN_READINESS_DELAY: '1', SVC_SHUTDOWN_SERVER_TIMEOUT: '0.5' },
    [1.5, 3.5],
    drained,
  ],
])('%s', async (_title, variables, [least, most], event) => {
  const { seconds, service, responses, ...exit } = await endWithThreeHeld(variables);

  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeGreaterThan(least);
  expect(seconds).toBeLessThan(most + BUSY_S);
  expect(drainEvents(service)).toEqual([event]);
  expect(responses).toEqual(Array(3).fill(refusal('service_unavailable_error', USERS)));
  expect(service.errors()).toBe('');
});

test('SVC_SHUTDOWN_DRAIN_TIMEOUT=0 without a request in flight is a clean drain', async () => {
  const service = await forThisTest(startBuiltService, { SVC_SHUTDOWN_DRAIN_TIMEOUT: '0' });
  await expectEndInOrder(service, 2);

  expect(drainEvents(service)).toEqual([drained]);
});

test('requests that wait for a connection or for their body are cancelled, too', async () => {
  const service = await forThisTest(startBuiltService, {
    ...PATIENT,
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_SHUTDOWN_SERVER_TIMEOUT: '0.7',
  });
  const lock = await holdUsers(service.database);
  const held = times(3, () => service.call('GET', USERS));
  await untilUnderWay(1, service.database);
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const fields = { Authorization, 'Content-Type': 'application/json', 'Content-Length': '100' };
  const bodiless = await connectAndSend(service.url, requestText(`POST ${USERS}`, fields));
  // A later request is answered after the service has read the earlier ones.
  await fetch(`${service.url}/health`);
  await expectEndInOrder(service, 2.7);
  await lock.release();

  expect((await held).map(({ status }) => status)).toEqual([503, 503, 503]);
  expect(await bodiless.answer()).toMatchObject(refusal('service_unavailable_error', USERS));
  expect(drainEvents(service)).toEqual([drained]);
});

test('requests that wait for the keys of the identity provider are cancelled, too', async () => {
  const provider = await forThisTest(startIssuer);
  provider.answer(() => {});
  const service = await forThisTest(startBuiltService, {
    SVC_OAUTH_JWKS_URI: provider.jwksUri,
    SVC_SHUTDOWN_SERVER_TIMEOUT: '0.3',
    // Less than the time limit of the fetch.
    SVC_SHUTDOWN_DRAIN_TIMEOUT: '2',
  });
  const held = service.call('GET', USERS);
  await until('the fetch', () => provider.fetches > 0);
  const { seconds, ...exit } = await endedBy('SIGTERM', service);

  expect((await held).status).toBe(503);
  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeGreaterThan(0.3);
  expect(seconds).toBeLessThan(2.3 + BUSY_S);
  expect(drainEvents(service)).toEqual([drained]);
});
