import { expect, test } from 'vitest';
import { maintain as maintainDatabase } from '../../lib/maintenance.ts';
import { readSettings } from '../../lib/settings.ts';
import { freshAddress, refusal, type UserBody } from '../stage/answers.ts';
import { CHANGES, nextOf } from '../stage/changes.ts';
import { inDatabase } from '../stage/rows.ts';
import { environmentOf } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const USERS = '/api/v1/users/';

const service = serviceUnderTest();
const { call } = service;
const query = (statement: string) => inDatabase(service.database, statement);

const get = (path: string) => call('GET', path);

const createUser = async (headers: Record<string, string> = {}) =>
  (await call('POST', USERS, { email: freshAddress() }, { headers })).body as UserBody;

/** As an instance does from time to time. */
const maintain = () => maintainDatabase(readSettings(environmentOf(service.database, service.issuer)));

test('changes older than the retention are deleted, and a cursor from before them is 410', async () => {
  const beginning = nextOf(await get(`${CHANGES}?limit=1&cursor=now`));
  const [old, young] = [await createUser(), await createUser()];
  const ofOld = nextOf(await get(`${USERS}${old.id}/changes`));
  const cursor = nextOf(await get(beginning.replace('limit=1', 'limit=1')));
  await query(`UPDATE user_changes SET time = time - interval '31 days' WHERE user_id = '${old.id}'`);

  await maintain();

  expect(await get(beginning)).toEqual(refusal('cursor_expired_error', CHANGES));
  expect((await get(cursor)).body).toMatchObject([{ subject: young.id }]);
  expect((await get(CHANGES)).body).toMatchObject([{ subject: young.id }]);
  expect((await get(ofOld)).body).toEqual([]);
  expect((await get(`${USERS}${old.id}/changes`)).body).toEqual([]);
});

test('keys older than 24 hours are deleted, and are as new', async () => {
  await createUser({ 'idempotency-key': 'young' });
  await createUser({ 'idempotency-key': 'old' });
  await query(`
    UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'
    WHERE created_at = (SELECT max(created_at) FROM idempotency_keys)
  `);

  await maintain();

  expect(await query('SELECT FROM idempotency_keys')).toHaveLength(1);
});

test('a cursor from before an instance that recorded no changes is 410, once changes are read again', async () => {
  await createUser();
  const before = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));
  // Instances of earlier versions set this when they wrote without recording changes.
  await query('UPDATE user_changes_head SET is_interrupted = true');
  const seen = await createUser();

  expect(await get(before)).toEqual(refusal('cursor_expired_error', CHANGES));
  const page = await get(CHANGES);
  expect(page.body).toMatchObject([{ subject: seen.id }]);
  expect((await get(nextOf(page))).status).toBe(200);
});

test('a cursor beyond the last change, as after a restored backup, is 410', async () => {
  await createUser();
  const cursor = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));
  await query('UPDATE user_changes_head SET position = position - 1');

  expect(await get(cursor)).toEqual(refusal('cursor_expired_error', CHANGES));
});
