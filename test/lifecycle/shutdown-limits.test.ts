import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/settings.ts';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { connectTo, written } from '../stage/connection.ts';
import { holdUsers, untilUnderWay } from '../stage/locks.ts';
import { refusal, TIMESTAMP } from '../stage/responses.ts';
import { drainEvents, endedBy } from '../stage/shutdown.ts';
import { startIssuer } from '../stage/tokens.ts';

let service: BuiltService;

afterEach(() => service.remove());

const users = '/api/v1/users/';
const common = { timestamp: expect.stringMatching(TIMESTAMP) };
const drained = { ...common, level: 'info', event: 'shutdown_drained' };
const timedOut = (inFlight: number) => ({
  ...common,
  level: 'warning',
  event: 'shutdown_drain_timeout',
  in_flight: inFlight,
});

const patient = { SVC_POSTGRES_STATEMENT_TIMEOUT: '60', SVC_POSTGRES_POOL_TIMEOUT: '60' };

/** Holds three requests at a locked table and stops the service. Resolves with its log and the three responses. */
async function endWithThreeHeld(variables: Variables) {
  service = await startBuiltService({ ...patient, ...variables });
  const lock = await holdUsers(service.database);
  const held = Array.from({ length: 3 }, () => service.call('GET', users));
  await untilUnderWay(2, service.database);
  const ended = await endedBy('SIGTERM', service);
  const responses = await Promise.all(
    held.map(async (request) => {
      const response = await request;
      return { status: response.status, body: await response.json() };
    }),
  );
  // The table is still locked, so only the shutdown can have stopped them.
  await untilUnderWay(0, service.database, 3);
  await lock.release();
  return { ...ended, responses };
}

const { status, body } = refusal('service_unavailable_error', users);
const threeRefused = Array.from({ length: 3 }, () => ({ status, body }));

test('after SVC_SHUTDOWN_DRAIN_TIMEOUT remaining requests are counted, cancelled, and stopped in PostgreSQL', async () => {
  const { seconds, responses, ...exit } = await endWithThreeHeld({ SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.7' });

  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeGreaterThan(0.7);
  expect(seconds).toBeLessThan(2.7);
  expect(drainEvents(service)).toEqual([timedOut(3)]);
  expect(responses).toEqual(threeRefused);
  expect(service.errors()).toBe('');
});

test.each(['0', '-1'])('SVC_SHUTDOWN_DRAIN_TIMEOUT=%s ends the drain at once', async (timeout) => {
  const { seconds, responses, ...exit } = await endWithThreeHeld({ SVC_SHUTDOWN_DRAIN_TIMEOUT: timeout });

  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeLessThan(2);
  expect(drainEvents(service)).toEqual([timedOut(3)]);
  expect(responses).toEqual(threeRefused);
});

test('SVC_SHUTDOWN_DRAIN_TIMEOUT=0 without a request in flight is a clean drain', async () => {
  service = await startBuiltService({ SVC_SHUTDOWN_DRAIN_TIMEOUT: '0' });
  const { seconds, ...exit } = await endedBy('SIGTERM', service);

  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeLessThan(2);
  expect(drainEvents(service)).toEqual([drained]);
});

test('a shorter SVC_SHUTDOWN_SERVER_TIMEOUT cancels the requests, and the drain is reported as complete', async () => {
  const { seconds, responses, ...exit } = await endWithThreeHeld({
    SVC_SHUTDOWN_SERVER_TIMEOUT: '0.7',
    SVC_SHUTDOWN_DRAIN_TIMEOUT: '20',
  });

  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeGreaterThan(0.7);
  expect(seconds).toBeLessThan(2.7);
  expect(drainEvents(service)).toEqual([drained]);
  expect(responses).toEqual(threeRefused);
});

test('a longer SVC_SHUTDOWN_SERVER_TIMEOUT has no effect', async () => {
  const { seconds, responses } = await endWithThreeHeld({
    SVC_SHUTDOWN_SERVER_TIMEOUT: '10',
    SVC_SHUTDOWN_DRAIN_TIMEOUT: '0.7',
  });

  expect(seconds).toBeLessThan(2.7);
  expect(drainEvents(service)).toEqual([timedOut(3)]);
  expect(responses).toEqual(threeRefused);
});

test('SVC_SHUTDOWN_SERVER_TIMEOUT begins with the drain, after the delay', async () => {
  const { seconds } = await endWithThreeHeld({
    SVC_SHUTDOWN_READINESS_DELAY: '1',
    SVC_SHUTDOWN_SERVER_TIMEOUT: '0.5',
  });

  expect(seconds).toBeGreaterThan(1.5);
  expect(seconds).toBeLessThan(3.5);
  expect(drainEvents(service)).toEqual([drained]);
});

test('requests that wait for a connection or for their body are cancelled, too', async () => {
  service = await startBuiltService({
    ...patient,
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_SHUTDOWN_SERVER_TIMEOUT: '0.7',
  });
  const lock = await holdUsers(service.database);
  const held = Array.from({ length: 3 }, () => service.call('GET', users));
  await untilUnderWay(1, service.database);
  const bodiless = await connectTo(service.url);
  bodiless.send(
    written(`POST ${users}`, [
      ['Host', 'localhost'],
      ['Authorization', `Bearer ${await service.issuer.sign()}`],
      ['Content-Type', 'application/json'],
      ['Content-Length', '100'],
    ]),
  );
  await sleep(200);
  const { seconds, ...exit } = await endedBy('SIGTERM', service);
  await lock.release();

  expect((await Promise.all(held)).map((response) => response.status)).toEqual([503, 503, 503]);
  expect(await bodiless.answer()).toMatchObject(refusal('service_unavailable_error', users));
  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeLessThan(2.7);
  expect(drainEvents(service)).toEqual([drained]);
});

test('requests that wait for the keys of the identity provider are cancelled, too', async () => {
  const provider = await startIssuer();
  provider.answer(() => {});
  service = await startBuiltService({
    SVC_OAUTH_JWKS_URI: provider.jwksUri,
    SVC_SHUTDOWN_SERVER_TIMEOUT: '0.3',
  });
  const held = service.call('GET', users);
  await sleep(200);
  const { seconds, ...exit } = await endedBy('SIGTERM', service);
  await provider.stop();

  expect((await held).status).toBe(503);
  expect(exit).toEqual({ code: 0, signal: null });
  expect(seconds).toBeGreaterThan(0.3);
  expect(seconds).toBeLessThan(2.3);
  expect(drainEvents(service)).toEqual([drained]);
});
