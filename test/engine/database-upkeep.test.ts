import { expect, type TestContext, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { freshKey } from '../stage/keyed.ts';
import { hold } from '../stage/locks.ts';
import { createDatabase } from '../stage/postgres.ts';
import {
  BATCH,
  freshAddress,
  readResponse,
  refusal,
  success,
  USERS,
  type UserBody,
  user,
} from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

/** A service whose database has these settings, and an administrator of the database. */
async function start({ onTestFinished }: TestContext, ...settings: readonly string[]) {
  const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  const admin = await administer(database.name);
  for (const setting of settings) await admin.query(`ALTER DATABASE ${database.name} SET ${setting}`);
  const service = await startService({}, { database, issuer });
  const { call } = service;
  onTestFinished(async () => {
    await service.stop();
    await issuer.stop();
    await admin.end();
    await database.drop();
  });
  return {
    database,
    admin,
    call: async (...request: Parameters<typeof call>) => readResponse(await call(...request)),
  };
}

test('a taken email is 409 while its index is rebuilt', async (context) => {
  const { database, admin, call } = await start(context);
  const [email, other] = [freshAddress(), freshAddress()];
  await call('POST', USERS, { email });
  const { id } = (await call('POST', USERS, { email: other })).body as UserBody;
  // The old index stays under another name as long as a transaction may read it.
  const reader = await hold(database, 'SELECT FROM users LIMIT 1');
  const rebuilt = admin.query('REINDEX INDEX CONCURRENTLY users_email_key');
  const watcher = await administer(database.name);
  await until('the old index has another name', async () => {
    const old = "SELECT FROM pg_class WHERE relname = 'users_email_key_ccold'";
    return (await watcher.query(old)).length > 0;
  });
  const headers = { 'idempotency-key': freshKey() };
  const responses = [
    await call('POST', USERS, { email }),
    await call('POST', USERS, { email }, { headers }),
    await call('PATCH', USERS + id, { email }),
    await call('POST', BATCH, { items: [{ email: freshAddress() }, { email }] }),
    await call('POST', BATCH, { items: [{ email }], mode: 'partial' }),
  ];
  await reader.release();
  await rebuilt;
  await watcher.end();

  expect(responses.map(({ status }) => status)).toEqual([409, 409, 409, 409, 200]);
});

test('null is null with any setting of the database for nulls in arrays', async (context) => {
  const { call } = await start(context, 'array_nulls = off');
  const [one, other] = [{ email: freshAddress() }, { email: freshAddress() }];
  const created = await call('POST', USERS, one);
  const { id } = created.body as UserBody;

  expect(created).toMatchObject({ status: 201, body: user(one) });
  expect(await call('POST', BATCH, { items: [other] })).toEqual(success(201, [user(other)]));
  expect(await call('PATCH', USERS + id, { full_name: 'Ada' })).toMatchObject({
    status: 200,
    body: { full_name: 'Ada' },
  });
});

test('a transaction that PostgreSQL ends at a limit of the database is 503', async (context) => {
  const { database, call } = await start(context, "transaction_timeout = '500'");
  const { id } = (await call('POST', USERS, { email: freshAddress() })).body as UserBody;
  const user = `SELECT FROM users WHERE id = '${id}' FOR UPDATE`;
  const lock = await hold(database, 'SET LOCAL transaction_timeout = 0', user);
  const response = await call('PATCH', USERS + id, { full_name: 'Ada' });
  await lock.release();

  expect(response).toEqual(refusal('service_unavailable_error', USERS + id));
});
