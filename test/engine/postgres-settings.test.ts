import { expect, test } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { holdUsers } from '../stage/locks.ts';
import { probe, readResponse, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { timed } from '../stage/timed.ts';
import { BUSY_S } from '../stage/until.ts';

test('SVC_POSTGRES_MIGRATE=false leaves the database unchanged, and /ready is 503 until it is migrated', async () => {
  const service = await startService({ SVC_POSTGRES_MIGRATE: 'false' }, undefined, {
    waitsUntilReady: false,
  });
  const ready = async () => readResponse(await fetch(`${service.url}/ready`));
  const before = [await ready(), await ready()];
  await runMigrations(readSettings(service.environment).postgres);
  const after = await ready();
  await service.stop();

  expect(before).toEqual(before.map(() => refusal('service_unavailable_error', '/ready')));
  expect(after).toEqual(probe('ready'));
});

test('a request waits at most SVC_POSTGRES_STATEMENT_TIMEOUT for a statement and SVC_POSTGRES_POOL_TIMEOUT for a connection', async () => {
  const service = await startService({
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_POSTGRES_POOL_TIMEOUT: '0.3',
    SVC_POSTGRES_STATEMENT_TIMEOUT: '1.5',
  });
  await service.call('GET', USERS);
  const lock = await holdUsers(service.database);
  const read = async () => readResponse(await service.call('GET', USERS));
  const [first, second] = await Promise.all([timed(read()), timed(read())]);
  await lock.release();
  await service.stop();

  expect([first.value, second.value]).toEqual([
    refusal('service_unavailable_error', USERS),
    refusal('service_unavailable_error', USERS),
  ]);
  const [quick, slow] = [first.milliseconds, second.milliseconds].toSorted((one, other) => one - other);
  expect(quick).toBeGreaterThan(250);
  expect(Number(slow) - Number(quick)).toBeGreaterThan(500);
  expect(slow).toBeGreaterThan(1400);
  expect(slow).toBeLessThan(3500 + 1000 * BUSY_S);
});
