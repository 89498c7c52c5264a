import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { connectAndSend, connectTo, requestText } from '../stage/connection.ts';
import { expectEndInOrder } from '../stage/end-in-order.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { hold, holdUser, untilUnderWay } from '../stage/locks.ts';
import { USERS } from '../stage/responses.ts';
import { drainEvents } from '../stage/shutdown.ts';

/** A create whose body of `length` bytes is not sent yet. */
async function beginCreate({ url, issuer }: BuiltService, length: number) {
  const Authorization = `Bearer ${await issuer.sign()}`;
  const fields = { Authorization, 'Content-Type': 'application/json', 'Content-Length': String(length) };
  return connectAndSend(url, requestText(`POST ${USERS}`, fields));
}

test('a request to /ready is not counted', async () => {
  const service = await forThisTest(startBuiltService);
  const lock = await hold(service.database, 'LOCK TABLE kysely_migration IN ACCESS EXCLUSIVE MODE');
  const probe = fetch(`${service.url}/ready`).catch(() => undefined);
  await untilUnderWay(1, service.database);
  const before = service.lines().length;
  service.signal('SIGTERM');
  await service.exited;
  await probe;
  await lock.release();

  // The drain ended while the probe was waiting, so the host refused connections before.
  expect(service.lines()[before]).toMatchObject({ event: 'shutdown_drained' });
});

test('a connection without a complete request is not counted', async () => {
  const service = await forThisTest(startBuiltService);
  const idle = await connectAndSend(service.url, requestText('GET /health', {}));
  await idle.answer();
  const silent = await connectTo(service.url);
  const unfinished = await connectAndSend(service.url, 'GET /api/v1/users/ HTTP/1.1\r\nHost: local');
  // A later request is answered after the service has read the earlier ones.
  await fetch(`${service.url}/health`);
  await expectEndInOrder(service, 2);

  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drained' }]);
  for (const connection of [idle, silent, unfinished]) expect(await connection.rest()).toBe('');
});

test('a request with an incomplete body is counted, and served when the body is complete', async () => {
  const service = await forThisTest(startBuiltService);
  const body = JSON.stringify({ email: 'slowly@example.com' });
  const connection = await beginCreate(service, body.length);
  // A later request is answered after the service has read the earlier ones.
  await fetch(`${service.url}/health`);
  service.signal('SIGTERM');
  await sleep(500);
  expect(drainEvents(service)).toEqual([]);
  connection.send(body);

  const response = await connection.answer();
  expect(response).toMatchObject({ status: 201, body: { email: 'slowly@example.com' } });
  expect(await connection.rest()).toBe('');
  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drained' }]);
});

test('a request is counted until its handler has ended, also if its client has disconnected', async () => {
  const service = await forThisTest(startBuiltService);
  const id = await service.createUser();
  const lock = await holdUser(service.database, id);
  const leave = new AbortController();
  const left = service.call('PATCH', USERS + id, { full_name: 'Left' }, { signal: leave.signal });
  await untilUnderWay(1, service.database);
  leave.abort();
  await expect(left).rejects.toThrow();
  service.signal('SIGTERM');
  await sleep(700);
  expect(drainEvents(service)).toEqual([]);
  await lock.release();

  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drained' }]);
  expect(service.events('user_updated')).toHaveLength(1);
});

test('a request is not counted after its response or refusal', async () => {
  const service = await forThisTest(startBuiltService);
  await service.call('POST', USERS, { email: 'answered@example.com' });
  await service.call('POST', USERS, { email: 'answered@example.com' });
  await service.call('GET', '/nowhere');
  await fetch(service.url + USERS);
  const broken = await beginCreate(service, 1000);
  broken.abort();
  const notHttp = await connectAndSend(service.url, 'HELO\r\n\r\n');
  await notHttp.answer();
  await expectEndInOrder(service, 2);

  expect(drainEvents(service)).toMatchObject([{ event: 'shutdown_drained' }]);
});
