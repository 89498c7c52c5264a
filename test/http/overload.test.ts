import { expect, onTestFinished, test, vi } from 'vitest';
import { simulateAdmissionTime } from '../stage/admission-time.ts';
import { connectAndSend, requestText, untilReceived } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT } from '../stage/locks.ts';
import { freshAddress, readResponse, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { repeat, times, until } from '../stage/until.ts';

/** Number of requests that are admitted with one connection to PostgreSQL. Further requests are queued. */
const INSIDE = 17;
const MORE = 23;

const isRefused = ({ status }: { status: number }) => status === 503;

/** A service with one connection to PostgreSQL and a locked table. */
async function startLocked() {
  const service = await forThisTest(startService, { ...PATIENT, SVC_POSTGRES_POOL_SIZE: '1' });
  const read = requestText(`GET ${USERS}`, { Authorization: `Bearer ${await service.issuer.sign()}` });
  // The service now knows the caller, and has a session.
  await (await connectAndSend(service.url, read)).answer();
  const lock = await forThisTest(holdUsers, service.database);
  /** Resolves with the responses to come, when the service has received so many reads, each on a connection of its own. */
  async function sendReads(count: number) {
    const connections = await times(count, () => connectAndSend(service.url, read));
    onTestFinished(() => connections.forEach(({ close }) => void close()));
    const answers = connections.map((connection) => connection.answer());
    // If the test fails, it does not wait for them.
    void Promise.allSettled(answers);
    await untilReceived(service.url);
    return answers;
  }
  return { service, lock, sendReads };
}

/** A service whose table is locked, with so many requests in progress that further ones are queued. */
async function startCrowded() {
  const { service, lock, sendReads } = await startLocked();
  const admitted = await sendReads(INSIDE);
  /** Admission refuses without checking the token. */
  const ask = () => fetch(service.url + USERS, { headers: { authorization: 'Bearer none' } });
  await until('a request is refused', async () => isRefused(await ask()));
  return { service, lock, admitted, queued: await sendReads(MORE), sendReads };
}

test('an overloaded instance responds with 503 before all checks, without an app_error, and /health with 200', async () => {
  const { service, lock, admitted, queued } = await startCrowded();
  const before = (await service.events()).filter(({ event }) => event === 'app_error').length;

  const headers = { authorization: 'Bearer none', 'x-request-id': 'mine' };
  const refused = await readResponse(await fetch(`${service.url}/nowhere?a=b`, { method: 'PATCH', headers }));
  const head = await readResponse(await fetch(service.url + USERS, { method: 'HEAD' }));
  expect((await fetch(`${service.url}/health`)).status).toBe(200);
  const refusals = await Promise.all(queued);
  await lock.release();
  const answers = await Promise.all(admitted);

  const problem = refusal('service_unavailable_error', '/nowhere');
  expect(refused).toEqual({ ...problem, headers: { ...problem.headers, 'x-request-id': 'mine' } });
  expect(head.headers).toMatchObject({ 'retry-after': '1', 'content-type': 'application/problem+json' });
  expect(refusals).toEqual(queued.map(() => refusal('service_unavailable_error', USERS)));
  expect(answers.map(({ status }) => status)).toEqual(admitted.map(() => 200));
  const after = (await service.events()).filter(({ event }) => event === 'app_error');
  expect(after).toHaveLength(before);
  await until('/ready is 200', async () => (await fetch(`${service.url}/ready`)).ok);
});

test('a request whose client has disconnected is not carried out', async () => {
  const { service, lock, admitted, queued } = await startCrowded();
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const email = freshAddress();
  const create = requestText(`POST ${USERS}`, { Authorization }, JSON.stringify({ email }));
  const hungUp = await connectAndSend(service.url, create);
  const halfClosed = await connectAndSend(service.url, create);
  halfClosed.halfClose();
  hungUp.abort();
  await untilReceived(service.url);
  await lock.release();

  expect(await halfClosed.answer()).toEqual(refusal('service_unavailable_error', USERS));
  await Promise.all([...admitted, ...queued]);
  const found = await service.call('GET', `${USERS}?email=${encodeURIComponent(email)}`);
  expect(found.body).toEqual([]);
});

test('a queued request is in flight until its response or refusal, and the drain waits for it', async () => {
  const { service, lock, admitted, queued, sendReads } = await startCrowded();
  const late = await sendReads(5);
  await lock.release();
  const stopped = service.host.shutDown();
  const answers = await Promise.all([...admitted, ...queued, ...late]);
  await stopped;

  expect(answers.every(({ status }) => status === 200 || status === 503)).toBe(true);
  expect((await service.events()).map(({ event }) => event)).toContain('shutdown_drained');
});

test('requests beyond the number in flight are queued briefly, and all are 200', async () => {
  simulateAdmissionTime();
  const { service, lock, sendReads } = await startLocked();
  const sent = await sendReads(INSIDE + 10);
  vi.advanceTimersByTime(800);
  await lock.release();

  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  expect(statuses).toEqual(statuses.map(() => 200));
  expect((await service.events()).map(({ event }) => event)).not.toContain('requests_refused');
});

test('every request that was sent before a drain begins has a response, also if the service has not read it yet', async () => {
  const service = await forThisTest(startService);
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const request = requestText(`GET ${USERS}`, { Authorization });
  const connections = await times(600, () => connectAndSend(service.url, requestText('GET /health', {})));
  onTestFinished(() => connections.forEach(({ close }) => void close()));
  // All are accepted before the load begins.
  await Promise.all(connections.map((connection) => connection.answer()));

  const statuses: number[] = [];
  const callers = connections.map((connection) =>
    repeat(async () => {
      connection.send(request);
      statuses.push((await connection.answer()).status);
    }),
  );
  await until('the load', () => statuses.length > connections.length);
  await Promise.all([...callers.map((stop) => stop()), service.host.shutDown()]);

  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect((await service.events()).map(({ event }) => event)).toContain('shutdown_drained');
});
