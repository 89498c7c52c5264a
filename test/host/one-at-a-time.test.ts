import { expect, type TestContext, test } from 'vitest';
import { success } from '../stage/answers.ts';
import { connectTo, written } from '../stage/connection.ts';
import { holdUsers, untilUnderWay } from '../stage/locks.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';

/** A service whose table is locked, its connections to PostgreSQL open, and three lists asked for on one connection. */
async function startWithThreeAtOnce(onTestFinished: TestContext['onTestFinished']) {
  const service = await startService({ SVC_SHUTDOWN_DRAIN_TIMEOUT: '5' });
  await Promise.all(Array.from({ length: 20 }, () => service.call('GET', USERS)));
  const lock = await holdUsers(service.database);
  onTestFinished(async () => {
    await lock.release();
    await service.stop();
  });
  const fields = [
    ['Host', 'service.test'],
    ['Authorization', `Bearer ${await service.issuer.sign()}`],
  ] as const;
  const connection = await connectTo(service.url);
  connection.send(Buffer.concat([1, 2, 3].map((limit) => written(`GET ${USERS}?limit=${limit}`, fields))));
  await untilUnderWay(1, service.database);
  return { service, lock, connection };
}

test('requests sent at once on one connection are carried out one after the other, and all are answered', async ({
  onTestFinished,
}) => {
  const { service, lock, connection } = await startWithThreeAtOnce(onTestFinished);
  const other = service.call('GET', USERS);
  await untilUnderWay(2, service.database);
  await lock.release();

  for (let count = 0; count < 3; count += 1) expect(await connection.answer()).toEqual(success(200, []));
  expect((await other).status).toBe(200);
  connection.close();
});

test('a caller that leaves meanwhile leaves nothing in flight', async ({ onTestFinished }) => {
  const { service, lock, connection } = await startWithThreeAtOnce(onTestFinished);
  connection.abort();
  await fetch(`${service.url}/health`);
  await lock.release();
  await service.host.shutDown();

  const drained = (await service.events())
    .map(({ event }) => event)
    .filter((event) => /drain/.test(`${event}`));
  expect(drained).toEqual(['shutdown_drained']);
});
