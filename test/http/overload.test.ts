import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectAndSend, requestText } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers } from '../stage/locks.ts';
import { freshAddress, readResponse, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { times } from '../stage/times.ts';
import { until } from '../stage/until.ts';

/** Number of requests that are admitted with one connection to PostgreSQL. Further requests are queued. */
const INSIDE = 17;
const MORE = 23;

const isRefused = ({ status }: { status: number }) => status === 503;

/** A service whose table is locked, with so many requests in progress that further ones are queued. */
async function startCrowded() {
  const service = await forThisTest(startService, {
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_POSTGRES_POOL_TIMEOUT: '30',
    SVC_POSTGRES_STATEMENT_TIMEOUT: '30',
  });
  const lock = await forThisTest(holdUsers, service.database);
  const sent = Array.from({ length: INSIDE + MORE }, () => service.call('GET', USERS));
  /** Admission refuses without checking the token. */
  const ask = () => fetch(service.url + USERS, { headers: { authorization: 'Bearer none' } });
  await until('a request is refused', async () => isRefused(await ask()));
  return { service, lock, sent };
}

/** Admission depends on the time that requests take. On a busy machine its decisions differ from the expected ones. */
const BY_TIME = { retry: 2 };

test(
  'an overloaded instance responds with 503 before all checks: a complete problem, without an app_error',
  BY_TIME,
  async () => {
    const { service, lock, sent } = await startCrowded();
    const before = (await service.events()).filter(({ event }) => event === 'app_error').length;

    const headers = { authorization: 'Bearer none', 'x-request-id': 'mine' };
    const refused = await readResponse(
      await fetch(`${service.url}/nowhere?a=b`, { method: 'PATCH', headers }),
    );
    const head = await readResponse(await fetch(service.url + USERS, { method: 'HEAD' }));
    await lock.release();
    const answers = await Promise.all(sent);

    const problem = refusal('service_unavailable_error', '/nowhere');
    expect(refused).toEqual({ ...problem, headers: { ...problem.headers, 'x-request-id': 'mine' } });
    expect(head.headers).toMatchObject({ 'retry-after': '1', 'content-type': 'application/problem+json' });
    expect(answers.filter(isRefused)).toEqual(
      Array.from({ length: MORE }, () => refusal('service_unavailable_error', USERS)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(INSIDE);
    const after = (await service.events()).filter(({ event }) => event === 'app_error');
    expect(after).toHaveLength(before);
  },
);

test('the probes of an overloaded instance are 200', BY_TIME, async () => {
  const { service } = await startCrowded();

  expect((await fetch(`${service.url}/health`)).status).toBe(200);
  expect((await fetch(`${service.url}/ready`)).status).toBe(200);
});

test('a request whose client has disconnected is not carried out', BY_TIME, async () => {
  const { service, lock, sent } = await startCrowded();
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const email = freshAddress();
  const create = requestText(`POST ${USERS}`, { Authorization }, JSON.stringify({ email }));
  const hungUp = await connectAndSend(service.url, create);
  const halfClosed = await connectAndSend(service.url, create);
  halfClosed.halfClose();
  hungUp.abort();
  expect((await fetch(`${service.url}/health`)).status).toBe(200);
  await lock.release();

  expect(await halfClosed.answer()).toEqual(refusal('service_unavailable_error', USERS));
  await Promise.all(sent);
  const found = await service.call('GET', `${USERS}?email=${encodeURIComponent(email)}`);
  expect(found.body).toEqual([]);
});

test(
  'a queued request is in flight until its response or refusal, and the drain waits for it',
  BY_TIME,
  async () => {
    const { service, lock, sent } = await startCrowded();
    const late = Array.from({ length: 5 }, () => service.call('GET', USERS));
    await lock.release();
    const stopped = service.host.shutDown();
    const answers = await Promise.all([...sent, ...late]);
    await stopped;

    expect(answers.every(({ status }) => status === 200 || status === 503)).toBe(true);
    expect((await service.events()).map(({ event }) => event)).toContain('shutdown_drained');
  },
);

test('requests beyond the number in flight are queued briefly, and all are 200', async () => {
  const service = await forThisTest(startService, { SVC_POSTGRES_POOL_SIZE: '1' });
  const lock = await holdUsers(service.database);
  const sent = Array.from({ length: INSIDE + 10 }, () => service.call('GET', USERS));
  // A request that is queued for longer than 0.85 seconds is refused.
  await sleep(200);
  await lock.release();

  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  expect(statuses).toEqual(statuses.map(() => 200));
  expect((await service.events()).map(({ event }) => event)).not.toContain('requests_refused');
});

test(
  'every request that was sent before a drain begins has a response, also if the service has not read it yet',
  BY_TIME,
  async () => {
    const service = await forThisTest(startService);
    const Authorization = `Bearer ${await service.issuer.sign()}`;
    const request = requestText(`GET ${USERS}`, { Authorization });
    const connections = await times(600, () => connectAndSend(service.url, requestText('GET /health', {})));
    onTestFinished(() => connections.forEach(({ close }) => void close()));
    // All are accepted before the load begins.
    await Promise.all(connections.map((connection) => connection.answer()));

    const statuses: number[] = [];
    let isDraining = false;
    const callers = connections.map(async (connection) => {
      while (!isDraining) {
        connection.send(request);
        statuses.push((await connection.answer()).status);
      }
    });
    await until('the load', () => statuses.length > connections.length);
    isDraining = true;
    await Promise.all([...callers, service.host.shutDown()]);

    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect((await service.events()).map(({ event }) => event)).toContain('shutdown_drained');
  },
);
