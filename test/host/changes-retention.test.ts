import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../lib/database/database.ts';
import { createMaintenance } from '../../lib/maintenance.ts';
import { readSettings } from '../../lib/settings.ts';
import { administer } from '../stage/administration.ts';
import { answerOf, freshAddress, refusal, type UserBody } from '../stage/answers.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';
const CHANGES = '/api/v1/users/changes';

let service: Awaited<ReturnType<typeof startService>>;
let administrator: Awaited<ReturnType<typeof administer>>;

beforeAll(async () => {
  service = await startService();
  administrator = await administer(service.database.name);
});

afterAll(async () => {
  await administrator.end();
  await service.stop();
});

const get = async (path: string, from = service) => answerOf(await from.call('GET', path));

const createUser = async (from = service, headers: Record<string, string> = {}) =>
  (await answerOf(await from.call('POST', USERS, { email: freshAddress() }, { headers }))).body as UserBody;

const nextOf = ({ headers }: Awaited<ReturnType<typeof get>>) => /<(.+)>/.exec(headers.link ?? '')?.[1] ?? '';

/** As an instance does from time to time. */
async function clean(retention = 30): Promise<void> {
  const database = openDatabase(readSettings(service.environment).postgres);
  await createMaintenance(database.statements, retention)();
  await database.close(1);
}

test('changes older than the retention are deleted, and a cursor from before them is 410', async () => {
  const beginning = nextOf(await get(`${CHANGES}?limit=1&cursor=now`));
  const [old, young] = [await createUser(), await createUser()];
  const ofOld = nextOf(await get(`${USERS}${old.id}/changes`));
  const cursor = nextOf(await get(beginning.replace('limit=1', 'limit=1')));
  await administrator.query(
    `UPDATE user_changes SET time = time - interval '31 days' WHERE user_id = '${old.id}'`,
  );

  await clean();

  expect(await get(beginning)).toEqual(refusal('cursor_expired_error', CHANGES));
  expect((await get(cursor)).body).toMatchObject([{ subject: young.id }]);
  expect((await get(CHANGES)).body).toMatchObject([{ subject: young.id }]);
  expect((await get(ofOld)).body).toEqual([]);
  expect((await get(`${USERS}${old.id}/changes`)).body).toEqual([]);
});

test('keys older than 24 hours are deleted, and are as new', async () => {
  await createUser(service, { 'idempotency-key': 'young' });
  await createUser(service, { 'idempotency-key': 'old' });
  await administrator.query(`
    UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'
    WHERE created_at = (SELECT max(created_at) FROM idempotency_keys)
  `);

  await clean();

  expect(await administrator.query('SELECT FROM idempotency_keys')).toHaveLength(1);
});

test('an instance with the changes off writes none, and every cursor from before it is 410', async () => {
  const before = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));
  const off = await startService({ SVC_CHANGES_RETENTION: '0' }, service);
  const unseen = await createUser(off);

  for (const path of [CHANGES, `${CHANGES}/`, `${USERS}${unseen.id}/changes`]) {
    expect(await get(path, off)).toEqual(refusal('not_found_error', path));
    expect((await off.call('POST', path, {})).status).toBe(404);
  }
  await off.stop();

  expect(await get(before)).toEqual(refusal('cursor_expired_error', CHANGES));
  const seen = await createUser();
  expect((await get(CHANGES)).body).toMatchObject([{ subject: seen.id }]);
  await clean(0);
  expect(await administrator.query('SELECT FROM user_changes')).toEqual([]);
});

test('a cursor that was taken while an instance with the changes off went on writing is 410 as well', async () => {
  const off = await startService({ SVC_CHANGES_RETENTION: '0' }, service);
  await createUser(off);
  const cursor = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));

  await until('the cursor has expired', async () => {
    await createUser(off);
    return (await get(cursor)).status === 410;
  });
  await off.stop();
  expect(await get(cursor)).toEqual(refusal('cursor_expired_error', CHANGES));
});

test('a cursor beyond the last change, as after a restored backup, is 410', async () => {
  await createUser();
  const cursor = nextOf(await get(`${CHANGES}?cursor=now&limit=0`));
  await administrator.query('UPDATE user_changes_head SET position = position - 1');

  expect(await get(cursor)).toEqual(refusal('cursor_expired_error', CHANGES));
});
