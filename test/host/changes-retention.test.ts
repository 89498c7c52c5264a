import { expect, test } from 'vitest';
import { maintain as maintainDatabase } from '../../lib/maintenance.ts';
import { readSettings, type Variables } from '../../lib/settings.ts';
import { answerOf, freshAddress, refusal, type UserBody } from '../stage/answers.ts';
import { CHANGES, nextOf } from '../stage/changes.ts';
import { inDatabase } from '../stage/rows.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';

const service = serviceUnderTest();
const { call } = service;
const query = (statement: string) => inDatabase(service.database, statement);

/** Another instance, with the changes off. */
async function startOff() {
  const off = await startService({ SVC_CHANGES_RETENTION: '0' }, service);
  const callOff: typeof call = async (...request) => answerOf(await off.call(...request));
  return { call: callOff, stop: off.stop };
}

const get = (path: string, from = call) => from('GET', path);

const createUser = async (from = call, headers: Record<string, string> = {}) =>
  (await from('POST', USERS, { email: freshAddress() }, { headers })).body as UserBody;

/** As an instance does from time to time. */
const maintain = (variables: Variables = {}) =>
  maintainDatabase(readSettings({ ...environmentOf(service.database, service.issuer), ...variables }));

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
  await createUser(call, { 'idempotency-key': 'young' });
  await createUser(call, { 'idempotency-key': 'old' });
  await query(`
    UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'
    WHERE created_at = (SELECT max(created_at) FROM idempotency_keys)
  `);

  await maintain();

  expect(await query('SELECT FROM idempotency_keys')).toHaveLength(1);
});

test('an instance with the changes off writes none, and every cursor from before it is 410', async () => {
  const before = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));
  const off = await startOff();
  const unseen = await createUser(off.call);

  for (const path of [CHANGES, `${CHANGES}/`, `${USERS}${unseen.id}/changes`]) {
    expect(await get(path, off.call)).toEqual(refusal('not_found_error', path));
    expect((await off.call('POST', path, {})).status).toBe(404);
  }
  await off.stop();

  expect(await get(before)).toEqual(refusal('cursor_expired_error', CHANGES));
  const seen = await createUser();
  expect((await get(CHANGES)).body).toMatchObject([{ subject: seen.id }]);
  await maintain({ SVC_CHANGES_RETENTION: '0' });
  expect(await query('SELECT FROM user_changes')).toEqual([]);
});

test('a cursor that was taken while an instance with the changes off went on writing is 410 as well', async () => {
  const off = await startOff();
  await createUser(off.call);
  const cursor = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));

  await until('the cursor has expired', async () => {
    await createUser(off.call);
    return (await get(cursor)).status === 410;
  });
  await off.stop();
  expect(await get(cursor)).toEqual(refusal('cursor_expired_error', CHANGES));
});

test('a cursor beyond the last change, as after a restored backup, is 410', async () => {
  await createUser();
  const cursor = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));
  await query('UPDATE user_changes_head SET position = position - 1');

  expect(await get(cursor)).toEqual(refusal('cursor_expired_error', CHANGES));
});
