import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { connectAndSend, connectTo, requestText } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { isListening } from '../stage/listening.ts';
import { holdUser, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { refusal, TIMESTAMP, USERS } from '../stage/responses.ts';
import { drainEvents, endedBy } from '../stage/shutdown.ts';
import { BUSY_S, times, until } from '../stage/until.ts';

let service: BuiltService;

const drained = { timestamp: expect.stringMatching(TIMESTAMP), level: 'info', event: 'shutdown_drained' };
const inOrder = { code: 0, signal: null };

const isReady = async () => (await fetch(`${service.url}/ready`)).ok;
const untilNotReady = () => until('/ready is 503', async () => !(await isReady()), { seconds: 2, every: 1 });

/** Starts a service and its drain, during which one request is held until `lock` is released. */
async function startAndDrain(signal: NodeJS.Signals = 'SIGTERM') {
  service = await forThisTest(startBuiltService, PATIENT);
  const id = await service.createUser();
  const lock = await holdUser(service.database, id);
  const held = service.send('PATCH', USERS + id, { full_name: 'Held' });
  await untilUnderWay(1, service.database);
  service.signal(signal);
  await untilNotReady();
  return { id, lock, held };
}

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends an idle process in order and at once', async (signal) => {
  service = await forThisTest(startBuiltService);
  const { seconds, ...exit } = await endedBy(signal, service);
  const end = Date.now();

  expect(exit).toEqual(inOrder);
  expect(seconds).toBeLessThan(2 + BUSY_S);
  expect(drainEvents(service)).toEqual([drained]);
  // The connections of earlier requests stay open for a second after the drain.
  expect(end - Date.parse(String(service.lines().at(-1)?.timestamp))).toBeLessThan(4500);
  expect(service.lines().at(-1)).toEqual(drained);
  expect(service.errors()).toBe('');
});

test('pipelined requests during the drain all have responses, and the last one closes the connection', async () => {
  const { lock, held } = await startAndDrain();
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const create = (name: string) =>
    requestText(`POST ${USERS}`, { Authorization }, `{"email":"${name}@example.com"}`);
  const connection = await connectAndSend(service.url, create('first') + create('second'));

  expect([(await connection.answer()).status, (await connection.answer()).status]).toEqual([201, 201]);
  expect(await connection.rest()).toBe('');
  await lock.release();
  expect((await held).status).toBe(200);
  expect(await service.exited).toEqual(inOrder);
});

test('/ready is 503 at once, requests in flight are awaited, and the database connections are closed after them', async () => {
  const { id, lock, held } = await startAndDrain();

  // New requests are still served, on connections that are closed after them.
  const [ready, health, created] = await Promise.all([
    fetch(`${service.url}/ready`),
    fetch(`${service.url}/health`),
    service.send('POST', USERS, { email: 'late@example.com' }),
  ]);
  expect([ready.status, health.status, created.status]).toEqual([503, 200, 201]);
  for (const { headers } of [ready, health, created]) expect(headers.get('connection')).toBe('close');
  expect(await ready.json()).toEqual(refusal('service_unavailable_error', '/ready').body);
  await sleep(300);
  expect(drainEvents(service)).toEqual([]);
  expect(service.isAlive()).toBe(true);

  await lock.release();
  const response = await held;
  expect(response.status).toBe(200);
  expect(response.headers.get('connection')).toBe('close');
  expect(await response.json()).toMatchObject({ id, full_name: 'Held' });
  expect(await service.exited).toEqual(inOrder);
  expect(drainEvents(service)).toEqual([drained]);
  expect(service.errors()).toBe('');
  await expect(fetch(`${service.url}/health`)).rejects.toThrow();
});

test('after the drain the listener closes, and requests on open connections are still served', async () => {
  service = await forThisTest(startBuiltService);
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const connect = () => connectAndSend(service.url, requestText('GET /health', {}));
  const [first, second] = await Promise.all([connect(), connect()]);
  for (const connection of [first, second]) expect((await connection.answer()).status).toBe(200);
  const ended = endedBy('SIGTERM', service);
  const port = Number(new URL(service.url).port);
  await until('the listener is closed', async () => !(await isListening(port)), { every: 5 });
  first.send(requestText(`POST ${USERS}`, { Authorization }, '{"email":"late@example.com"}'));
  const late = await first.answer();
  second.send(requestText('GET /ready', {}));
  const { seconds, ...exit } = await ended;

  expect([late.status, await first.rest()]).toEqual([201, '']);
  expect((await second.answer()).status).toBe(503);
  expect(exit).toEqual(inOrder);
  expect(seconds).toBeLessThan(2 + BUSY_S);
  expect(drainEvents(service)).toEqual([drained]);
});

test.each([0, 100])('connections that wait are served if it stops %i ms after the drain', async (delay) => {
  const { lock, held } = await startAndDrain();
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  service.signal('SIGSTOP');
  await lock.release();
  const connections = (await times(500, () => connectTo(service.url))).slice(-10);
  service.signal('SIGCONT');
  await until('the end of the drain', () => drainEvents(service).length > 0, { every: 1 });
  await sleep(delay);
  service.signal('SIGSTOP');
  for (const connection of connections) connection.send(requestText(`GET ${USERS}`, { Authorization }));
  await sleep(1200);
  service.signal('SIGCONT');

  const answers = await Promise.all(connections.map((connection) => connection.answer()));
  expect(answers.map(({ status }) => status)).toEqual(connections.map(() => 200));
  expect((await held).status).toBe(200);
  expect(await service.exited).toEqual(inOrder);
});

test('during SVC_SHUTDOWN_READINESS_DELAY everything except /ready is served as before', async () => {
  service = await forThisTest(startBuiltService, { SVC_SHUTDOWN_READINESS_DELAY: '1.5' });
  const ended = endedBy('SIGTERM', service);
  await untilNotReady();
  const responses = await Promise.all([
    fetch(`${service.url}/health`),
    service.send('POST', USERS, { email: 'as-before@example.com' }),
    service.send('GET', USERS),
  ]);
  const eventsMeanwhile = drainEvents(service);
  const { seconds, ...exit } = await ended;

  expect(responses.map(({ status }) => status)).toEqual([200, 201, 200]);
  expect(responses.map(({ headers }) => headers.get('connection'))).not.toContain('close');
  expect(eventsMeanwhile).toEqual([]);
  expect(exit).toEqual(inOrder);
  expect(seconds).toBeGreaterThan(1.5);
  expect(seconds).toBeLessThan(3.5 + BUSY_S);
  expect(drainEvents(service)).toEqual([drained]);
});

test('a request that starts during the delay and outlasts it is awaited', async () => {
  service = await forThisTest(startBuiltService, { SVC_SHUTDOWN_READINESS_DELAY: '0.5' });
  const id = await service.createUser();
  const lock = await holdUser(service.database, id);
  service.signal('SIGTERM');
  await untilNotReady();
  const held = service.call('DELETE', USERS + id);
  await untilUnderWay(1, service.database);
  await sleep(1000);
  expect(service.isAlive()).toBe(true);
  await lock.release();

  expect((await held).status).toBe(204);
  expect(await service.exited).toEqual(inOrder);
  expect(drainEvents(service)).toEqual([drained]);
});

test.each(['SIGTERM', 'SIGINT'] as const)('a SIGTERM after %s changes nothing', async (first) => {
  const { lock, held } = await startAndDrain(first);
  service.signal('SIGTERM');
  await sleep(300);
  expect(service.isAlive()).toBe(true);
  await lock.release();

  expect((await held).status).toBe(200);
  expect(await service.exited).toEqual(inOrder);
  expect(drainEvents(service)).toEqual([drained]);
  expect(service.errors()).toBe('');
});
