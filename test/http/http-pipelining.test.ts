import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectAndSend, requestText } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { success, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { times, until } from '../stage/until.ts';

/** A service with a locked table and open PostgreSQL connections, and three pipelined requests for the list. */
async function startWithThreeAtOnce() {
  const service = await forThisTest(startService, { ...PATIENT, SVC_SHUTDOWN_DRAIN_TIMEOUT: '15' });
  await times(20, () => service.call('GET', USERS));
  const lock = await forThisTest(holdUsers, service.database);
  const fields = { Authorization: `Bearer ${await service.issuer.sign()}` };
  const connection = await connectAndSend(
    service.url,
    [1, 2, 3].map((limit) => requestText(`GET ${USERS}?limit=${limit}`, fields)).join(''),
  );
  await untilUnderWay(1, service.database);
  return { service, lock, connection };
}

test('pipelined requests are carried out one after another, and all have responses', async () => {
  const { service, lock, connection } = await startWithThreeAtOnce();
  const other = service.call('GET', USERS);
  await untilUnderWay(2, service.database);
  await lock.release();

  for (let count = 0; count < 3; count += 1) expect(await connection.answer()).toEqual(success(200, []));
  expect((await other).status).toBe(200);
  connection.close();
});

test('a client that disconnects meanwhile leaves nothing in flight', async () => {
  const { service, lock, connection } = await startWithThreeAtOnce();
  connection.abort();
  await fetch(`${service.url}/health`);
  await lock.release();
  await service.host.shutDown();

  const events = (await service.events()).map(({ event }) => String(event));
  expect(events.filter((event) => event.includes('drain'))).toEqual(['shutdown_drained']);
});

test('a connection with many waiting requests is not read further, and all have responses in the end', {
  timeout: 180_000,
}, async () => {
  const service = await forThisTest(startService, PATIENT);
  const lock = await forThisTest(holdUsers, service.database);
  const Authorization = `Bearer ${await service.issuer.sign()}`;
  const padding = { 'X-Padding': 'x'.repeat(6000) };
  // Some of them have their responses before their bodies are read.
  const refused = requestText('GET /nowhere', padding) + requestText(`POST ${USERS}`, padding, '{}');
  const pairs = 2000;
  const list = requestText(`GET ${USERS}`, { Authorization });
  const { socket, statuses, close } = await connectAndSend(service.url, list + refused.repeat(pairs));
  onTestFinished(close);
  await until('nothing more is read', async () => {
    const { writableLength } = socket;
    await sleep(500);
    return socket.writableLength === writableLength;
  });

  // More than the kernel buffers for both sides.
  expect(socket.writableLength).toBeGreaterThan(5_000_000);
  await lock.release();
  await until('all have responses', () => statuses().length === 2 * pairs + 1, { seconds: 50 });
});

test('a client that ends its side after its requests gets all responses', async () => {
  const service = await forThisTest(startService);
  const connection = await connectAndSend(service.url, requestText('GET /nowhere', {}).repeat(100));
  connection.halfClose();

  for (let count = 0; count < 100; count += 1) expect((await connection.answer()).status).toBe(404);
  expect(await connection.rest()).toBe('');
});
