import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, type TestContext, test } from 'vitest';
import type { Variables } from '../../lib/settings/settings.ts';
import { administer } from '../stage/administration.ts';
import { holdUser } from '../stage/locks.ts';
import { freshAddress, readResponse, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { timed } from '../stage/timed.ts';
import { until } from '../stage/until.ts';

/** Five seconds, plus a margin; in milliseconds. */
const IN_TIME = 6500;

type Service = Awaited<ReturnType<typeof startService>>;

/** A service, and two connections that can lock its table. */
async function start({ onTestFinished }: TestContext, variables: Variables = {}) {
  const service = await startService(variables);
  const { name } = service.database;
  const [one, other] = await Promise.all([administer(name), administer(name)]);
  onTestFinished(async () => {
    await Promise.all([one.end(), other.end()]);
    await service.stop();
  });
  return { service, one, other };
}

const timedAnswer = (asking: Promise<Response>) => timed(asking.then(readResponse));

/** The longest duration in milliseconds. A busy machine prolongs the same requests without a lock, too. */
const longestOf = (all: readonly { milliseconds: number }[]) =>
  Math.max(...all.map(({ milliseconds }) => milliseconds));

async function lock({ query }: Awaited<ReturnType<typeof administer>>): Promise<void> {
  await query('BEGIN');
  await query('LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
}

// Not beside the tests below, because the requests need the whole processor.
test('with the table locked 200 requests are 503 in time, and the probes respond at once', async (context) => {
  const { service, one } = await start(context);
  await lock(one);

  const send = () =>
    Array.from({ length: 200 }, (_, index) =>
      timedAnswer(
        index % 2 === 0 ? service.call('GET', USERS) : service.call('POST', USERS, { email: freshAddress() }),
      ),
    );
  const requests = send();
  const probes = [];
  for (let round = 0; round < 5; round += 1) {
    probes.push(
      await timedAnswer(fetch(`${service.url}/health`)),
      await timedAnswer(fetch(`${service.url}/ready`)),
    );
    await sleep(200);
  }
  const answers = await Promise.all(requests);
  const waiting = await one.query(
    `SELECT FROM pg_stat_activity WHERE datname = '${service.database.name}' AND wait_event_type = 'Lock'`,
  );
  await one.query('ROLLBACK');
  await until('it serves again', async () => (await service.call('GET', USERS)).ok, { seconds: 3 });
  const unlocked = longestOf(await Promise.all(send()));

  expect(answers.map(({ value }) => value)).toEqual(
    answers.map(() => refusal('service_unavailable_error', USERS)),
  );
  expect(longestOf(answers)).toBeLessThan(IN_TIME + unlocked);
  expect(probes.map(({ value }) => value.status)).toEqual(probes.map(() => 200));
  expect(longestOf(probes)).toBeLessThan(1500 + unlocked);
  expect(waiting).toEqual([]);
  // The pool of ten, and the connection of readiness.
  expect(await one.countSessions(service.database.name)).toBeLessThanOrEqual(11);
});

// The tests from here on run concurrently, because each waits for limits of seconds.
test.concurrent('with the table locked twice, an update of an unknown id responds in time', async (context) => {
  const { expect } = context;
  const { service, one, other } = await start(context);
  await lock(one);

  // The update waits for the first lock. The query for the reason of its result waits for the second.
  const path = `${USERS}11111111-1111-1111-1111-111111111111`;
  const update = timedAnswer(service.call('PATCH', path, { full_name: 'nobody' }));
  await sleep(1000);
  const again = lock(other);
  await sleep(2500);
  await one.query('ROLLBACK');
  const { value, milliseconds } = await update;
  await again;
  await other.query('ROLLBACK');

  expect([404, 503]).toContain(value.status);
  expect(milliseconds).toBeLessThan(IN_TIME);
});

async function createUser(service: Service): Promise<string> {
  const created = await service.call('POST', USERS, { email: freshAddress() });
  return ((await created.json()) as UserBody).id;
}

describe.concurrent('a lock that is kept delays', () => {
  test.each([['10'], ['4']])(
    'no request that waits briefly for another one, with a pool of %s',
    async (size) => {
      const service = await startService({ SVC_POSTGRES_POOL_SIZE: size });
      const [kept, brief] = await Promise.all([createUser(service), createUser(service)]);
      const lock = await holdUser(service.database, kept);
      const changes = Array.from({ length: 12 }, () =>
        service.call('PATCH', USERS + kept, { full_name: 'Ada' }),
      );
      // All have been tried as often as their time limit allows.
      await sleep(2500);
      const briefly = await holdUser(service.database, brief);
      const waiting = timedAnswer(service.call('PATCH', USERS + brief, { full_name: 'Bea' }));
      await sleep(80);
      await briefly.release();
      const { value, milliseconds } = await waiting;
      await lock.release();
      const changed = await Promise.all(changes);
      await service.stop();

      expect(value.status).toBe(200);
      expect(milliseconds).toBeLessThan(1000);
      expect(changed.map(({ status }) => status)).toEqual(changed.map(() => 200));
    },
  );
});
