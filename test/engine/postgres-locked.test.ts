import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, type TestContext, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { BATCH } from '../stage/keyed.ts';
import { holdEmail, holdUser, untilUnderWay } from '../stage/locks.ts';
import { freshAddress, readResponse, refusal, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';

/** Five seconds, plus a margin for a busy machine. */
const IN_TIME = 6500;

type Service = Awaited<ReturnType<typeof startService>>;

/** A service, and two connections that can lock its table. */
async function start({ onTestFinished }: TestContext) {
  const service = await startService();
  const { name } = service.database;
  const [one, other] = await Promise.all([administer(name), administer(name)]);
  onTestFinished(async () => {
    await Promise.all([one.end(), other.end()]);
    await service.stop();
  });
  return { service, one, other };
}

async function timed(asking: Promise<Response>) {
  const start = performance.now();
  const answer = await readResponse(await asking);
  return { answer, milliseconds: performance.now() - start };
}

async function lock({ query }: Awaited<ReturnType<typeof administer>>): Promise<void> {
  await query('BEGIN');
  await query('LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
}

// Concurrently, because each waits for limits of seconds.
describe.concurrent('with the table locked', () => {
  test('200 requests are 503 in time, and the probes respond at once', async (context) => {
    const { expect } = context;
    const { service, one } = await start(context);
    await lock(one);

    const requests = Array.from({ length: 200 }, (_, index) =>
      timed(
        index % 2 === 0 ? service.call('GET', USERS) : service.call('POST', USERS, { email: freshAddress() }),
      ),
    );
    const probes = [];
    for (let round = 0; round < 5; round += 1) {
      probes.push(await timed(fetch(`${service.url}/health`)), await timed(fetch(`${service.url}/ready`)));
      await sleep(200);
    }
    const answers = await Promise.all(requests);
    const waiting = await one.query(
      `SELECT FROM pg_stat_activity WHERE datname = '${service.database.name}' AND wait_event_type = 'Lock'`,
    );
    await one.query('ROLLBACK');

    expect(answers.map(({ answer }) => answer)).toEqual(
      answers.map(() => refusal('service_unavailable_error', USERS)),
    );
    expect(Math.max(...answers.map(({ milliseconds }) => milliseconds))).toBeLessThan(IN_TIME);
    expect(probes.map(({ answer }) => answer.status)).toEqual(probes.map(() => 200));
    expect(Math.max(...probes.map(({ milliseconds }) => milliseconds))).toBeLessThan(1500);
    expect(waiting).toEqual([]);

    await until('it serves again', async () => (await service.call('GET', USERS)).ok, { seconds: 3 });
    // The pool of ten, and the connection of readiness.
    expect(await one.countSessions(service.database.name)).toBeLessThanOrEqual(11);
  });

  test('and locked again, an update of an unknown id responds in time', async (context) => {
    const { expect } = context;
    const { service, one, other } = await start(context);
    await lock(one);

    // The update waits for the first lock. The query for the reason of its result waits for the second.
    const path = `${USERS}11111111-1111-1111-1111-111111111111`;
    const update = timed(service.call('PATCH', path, { full_name: 'nobody' }));
    await sleep(1000);
    const again = lock(other);
    await sleep(2500);
    await one.query('ROLLBACK');
    const { answer, milliseconds } = await update;
    await again;
    await other.query('ROLLBACK');

    expect([404, 503]).toContain(answer.status);
    expect(milliseconds).toBeLessThan(IN_TIME);
  });
});

/** Expects that ten requests of each kind with a connection of its own succeed soon. */
async function expectOthersServed({ expect }: TestContext, service: Service): Promise<void> {
  const others = await Promise.all(
    Array.from({ length: 10 }, (_, index) => [
      timed(createUnder(service, `other${index}`)),
      timed(service.call('POST', BATCH, { items: [{ email: freshAddress() }] })),
      timed(service.call('GET', '/api/v1/users/changes')),
    ]).flat(),
  );

  expect(others.map(({ answer }) => answer.status)).toEqual(
    Array.from({ length: 10 }, () => [201, 201, 200]).flat(),
  );
  expect(Math.max(...others.map(({ milliseconds }) => milliseconds))).toBeLessThan(1500);
}

function createUnder(service: Service, key: string): Promise<Response> {
  return service.call('POST', USERS, { email: freshAddress() }, { headers: { 'idempotency-key': key } });
}

async function createUser(service: Service): Promise<string> {
  const created = await service.call('POST', USERS, { email: freshAddress() });
  return ((await created.json()) as UserBody).id;
}

describe.concurrent('a lock delays only the requests that need it:', () => {
  test('that of a user', async (context) => {
    const { service } = await start(context);
    const id = await createUser(service);
    const lock = await holdUser(service.database, id);
    const changes = Array.from({ length: 12 }, () => service.call('PATCH', USERS + id, { full_name: 'Ada' }));
    await untilUnderWay(2, service.database, 10, 30);
    await expectOthersServed(context, service);
    // Longer than a statement waits to be sent, so all of these have been sent once.
    await sleep(1500);
    await lock.release();

    const changed = await Promise.all(changes);
    context.expect(changed.map(({ status }) => status)).toEqual(changed.map(() => 200));
  });

  test('that of an email', async (context) => {
    const { service } = await start(context);
    const email = freshAddress();
    const lock = await holdEmail(service.database, email);
    const creates = Array.from({ length: 12 }, () => service.call('POST', USERS, { email }));
    await untilUnderWay(2, service.database, 10, 30);
    await expectOthersServed(context, service);
    await sleep(1500);
    await lock.commit();

    const created = await Promise.all(creates);
    context.expect(created.map(({ status }) => status)).toEqual(created.map(() => 409));
  });

  test.each([['10'], ['4']])('and no other request that waits briefly: a pool of %s', async (size) => {
    const service = await startService({ SVC_POSTGRES_POOL_SIZE: size });
    const [kept, brief] = await Promise.all([createUser(service), createUser(service)]);
    const lock = await holdUser(service.database, kept);
    const changes = Array.from({ length: 12 }, () =>
      service.call('PATCH', USERS + kept, { full_name: 'Ada' }),
    );
    // All have been tried as often as their time limit allows.
    await sleep(2500);
    const briefly = await holdUser(service.database, brief);
    const waiting = timed(service.call('PATCH', USERS + brief, { full_name: 'Bea' }));
    await sleep(80);
    await briefly.release();
    const { answer, milliseconds } = await waiting;
    await lock.release();
    const changed = await Promise.all(changes);
    await service.stop();

    expect(answer.status).toBe(200);
    expect(milliseconds).toBeLessThan(1000);
    expect(changed.map(({ status }) => status)).toEqual(changed.map(() => 200));
  });
});
