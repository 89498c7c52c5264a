import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { administer } from '../stage/administration.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { freshKey } from '../stage/keyed.ts';
import { holdEmail, holdUser, holdUsers, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { freshAddress, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { timed, times, until } from '../stage/until.ts';

async function start(variables: Variables = {}) {
  const service = await forThisTest(startService, variables);
  const create = (email = freshAddress(), init = {}) => service.call('POST', USERS, { email }, init);
  const createUser = async () => (await create()).body as UserBody;
  const rename = (id: string) => service.call('PATCH', USERS + id, { full_name: 'Ada' });
  return { ...service, create, createUser, rename };
}

test('with the table locked 200 requests are 503 before it is free, and the probes do not wait for them', async () => {
  const { database, url, call, create } = await start();
  const lock = await holdUsers(database);
  const ended: string[] = [];
  const requests = times(200, async (index) => {
    const response = await (index % 2 === 0 ? call('GET', USERS) : create());
    ended.push('request');
    return response;
  });
  const probes: number[] = [];
  for (const path of ['/health', '/ready', '/health', '/ready']) {
    probes.push((await fetch(url + path)).status);
    ended.push('probe');
  }
  const answers = await requests;
  const administrator = await administer(database.name);
  const waiting = await administrator.query(
    `SELECT FROM pg_stat_activity WHERE datname = '${database.name}' AND wait_event_type = 'Lock'`,
  );
  await lock.release();
  await until('it serves again', async () => (await call('GET', USERS)).status === 200);
  const sessions = await administrator.countSessions();
  await administrator.stop();

  expect(answers).toEqual(answers.map(() => refusal('service_unavailable_error', USERS)));
  expect(probes).toEqual([200, 200, 200, 200]);
  expect(ended.at(-1)).toBe('request');
  expect(waiting).toEqual([]);
  // The pool of ten, and the connection of readiness.
  expect(sessions).toBeLessThanOrEqual(11);
});

test('a lock that is kept delays no request that waits briefly for another one', async () => {
  const { database, createUser, rename } = await start(PATIENT);
  const [kept, brief] = await Promise.all([createUser(), createUser()]);
  const lock = await holdUser(database, kept.id);
  const changes = times(120, () => rename(kept.id));
  // Each has been tried for 50 ms, two at a time. The next tries take 100 ms or more.
  await sleep(3500);
  const briefly = await holdUser(database, brief.id);
  const waiting = timed(rename(brief.id));
  await sleep(80);
  await briefly.release();
  const { value, milliseconds } = await waiting;
  await lock.release();

  expect(value.status).toBe(200);
  // Behind all the others it would wait for six seconds.
  expect(milliseconds).toBeLessThan(4000);
  expect((await changes).map((changed) => changed.status)).toEqual(Array(120).fill(200));
});

test('200 creates that wait under keys do not delay requests without a key', async () => {
  const { database, call, create, createUser, rename } = await start(PATIENT);
  const { id } = await createUser();
  const email = freshAddress();
  const { release } = await holdEmail(database, email);
  const waiting = times(200, () => create(email, { headers: { 'idempotency-key': freshKey() } }));
  // Writes leave one of the six connections to reads.
  await untilUnderWay(5, database, 10, 50);

  const others = await times(10, async () => [
    (await call('GET', USERS + id)).status,
    (await call('GET', `${USERS}?limit=1`)).status,
    (await rename(id)).status,
    (await create()).status,
  ]);
  await release();
  await waiting;
  expect(others).toEqual(others.map(() => [200, 200, 200, 201]));
});
