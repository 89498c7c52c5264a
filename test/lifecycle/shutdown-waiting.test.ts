import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { CHANGES, change, endOfFeed, untilPolling } from '../stage/changes.ts';
import { expectEndInOrder } from '../stage/end-in-order.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUser, untilUnderWay } from '../stage/locks.ts';
import { readResponse, USERS, type UserBody } from '../stage/responses.ts';
import { drainEvents } from '../stage/shutdown.ts';
import { until } from '../stage/until.ts';

let service: BuiltService;
let administrator: Awaited<ReturnType<typeof administer>>;

async function start(variables = {}) {
  service = await forThisTest(startBuiltService, variables);
  administrator = await forThisTest(administer, service.database.name);
}

const call: BuiltService['call'] = (...request) => service.call(...request);
const createUser = async (email: string) => (await call('POST', USERS, { email })).body as UserBody;

test('waiting requests have their responses when the drain begins, and do not delay it', async () => {
  await start();
  const end = await endOfFeed(call);
  const waiting = Array.from({ length: 20 }, () => service.send('GET', `${end}&wait=20`));
  await untilPolling(administrator);
  await expectEndInOrder(service, 5);

  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drained' }]);
  for (const response of await Promise.all(waiting)) {
    expect(response.headers.get('connection')).toBe('close');
    expect((await readResponse(response)).body).toEqual([]);
  }
});

test('waiting requests continue to wait before the drain begins, and return changes', async () => {
  await start({ SVC_SHUTDOWN_READINESS_DELAY: '2' });
  const waiting = call('GET', `${await endOfFeed(call)}&wait=20`);
  await untilPolling(administrator);
  service.signal('SIGTERM');
  await until('/ready is 503', async () => (await fetch(`${service.url}/ready`)).status === 503);
  await untilPolling(administrator);
  const ada = await createUser('ada@example.com');

  expect((await waiting).body).toEqual([change('user.created', ada, 1)]);
  await service.exited;
});

test('during the drain no request waits, and each returns the changes that are there', async () => {
  await start();
  const end = await endOfFeed(call);
  const ada = await createUser('ada@example.com');
  const lock = await holdUser(service.database, ada.id);
  const held = call('PATCH', USERS + ada.id, { full_name: 'Ada' });
  await untilUnderWay(1, service.database);
  service.signal('SIGTERM');
  await until(
    'the drain',
    async () => (await fetch(`${service.url}/health`)).headers.get('connection') === 'close',
  );

  expect((await call('GET', `${end}&wait=20`)).body).toEqual([change('user.created', ada, 1)]);
  expect((await call('GET', `${CHANGES}?wait=20`)).body).toEqual([change('user.created', ada, 1)]);
  expect((await call('GET', `${CHANGES}?cursor=now&wait=20`)).body).toEqual([]);
  await lock.release();
  expect((await held).status).toBe(200);
  expect(await service.exited).toEqual({ code: 0, signal: null });
});

test('a waiting request counts as in flight when the drain ends its wait', async () => {
  await start({ SVC_SHUTDOWN_DRAIN_TIMEOUT: '0', SVC_SHUTDOWN_READINESS_DELAY: '1' });
  const waiting = call('GET', `${await endOfFeed(call)}&wait=20`);
  await untilPolling(administrator);
  service.signal('SIGTERM');

  expect(await service.exited).toEqual({ code: 0, signal: null });
  await waiting.catch(() => undefined);
  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drain_timeout', in_flight: 1 }]);
});

test('a request that has waited is not counted after its response, not even when its wait would have ended', async () => {
  await start();
  const waiting = call('GET', `${await endOfFeed(call)}&wait=1`);
  await untilPolling(administrator);
  await createUser('ada@example.com');
  await waiting;
  await sleep(1100);
  await expectEndInOrder(service, 2);

  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drained' }]);
});
