import { sql } from 'kysely';
import { expect, inject, test } from 'vitest';
import { Database } from '../../lib/postgres/index.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { freshKey } from '../stage/keyed.ts';
import { hold } from '../stage/locks.ts';
import { settingsFor } from '../stage/opened-database.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { BATCH, freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';
import { prepare } from '../stage/statements.ts';
import { until } from '../stage/until.ts';

/** A service for one test whose database has this setting, and an administrator of the database. */
async function start(setting?: string, variables: Variables = {}) {
  const service = await forThisTest(startService, variables, undefined, {
    prepare: async (database) => setting && database.query(`ALTER DATABASE ${database.name} SET ${setting}`),
  });
  return { ...service, query: service.database.query };
}

test('a taken email is 409 while its index is rebuilt', async () => {
  const { database, query, call } = await start();
  const [email, other] = [freshAddress(), freshAddress()];
  await call('POST', USERS, { email });
  const { id } = (await call('POST', USERS, { email: other })).body as UserBody;
  // The old index stays under another name as long as a transaction may read it.
  const reader = await hold(database, 'SELECT FROM users LIMIT 1');
  const rebuilt = query('REINDEX INDEX CONCURRENTLY users_email_key');
  const old = "SELECT FROM pg_class WHERE relname = 'users_email_key_ccold'";
  await until('the old index has another name', async () => (await query(old)).length > 0);
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

  expect(responses.map(({ status }) => status)).toEqual([409, 409, 409, 409, 200]);
});

test.each<Variables>([{}, { SVC_POSTGRES_POOLER: 'transaction' }, { SVC_POSTGRES_ENGINE: 'distributed' }])(
  'null is null, and NULL a text, with array_nulls = off of the database and %o',
  async (variables) => {
    const { call } = await start('array_nulls = off', variables);
    const [one, other] = [{ email: freshAddress() }, { email: freshAddress() }];
    const created = await call('POST', USERS, one);
    const { id } = created.body as UserBody;

    expect(created).toMatchObject({ status: 201, body: user(one) });
    expect(await call('POST', BATCH, { items: [other] })).toEqual(success(201, [user(other)]));
    expect(await call('PATCH', USERS + id, { full_name: 'Ada' })).toMatchObject({
      status: 200,
      body: { full_name: 'Ada' },
    });
    const names = [null, 'NULL', '', '{"a", \\\\b}', null, 'é', null];
    const users = names.map((full_name, index) => ({
      email: freshAddress(),
      full_name,
      ...(index % 2 === 0 && { external_id: freshAddress() }),
    }));
    const single = await Promise.all(users.slice(0, 4).map((given) => call('POST', USERS, given)));
    const batch = await call('POST', BATCH, { items: users.slice(4) });
    expect([...single.map(({ body }) => body), ...(batch.body as UserBody[])]).toEqual(users.map(user));
  },
);

test('a session has every setting that the role must have behind a pooler, whatever the database sets', async () => {
  const { database, query } = await start('jit = on');
  const role = `pooled_${database.name}`;
  const statements = blockOf('infra/postgresql/README.md', 'The role behind a pooler');
  await query(`CREATE ROLE ${role}`, statements.replaceAll('<role>', role));
  const settings = await query(
    `SELECT split_part(set, '=', 1) AS name, split_part(set, '=', 2) AS value
     FROM pg_roles, unnest(rolconfig) AS set WHERE rolname = '${role}'`,
  );
  await query(`DROP ROLE ${role}`);
  const read = prepare<{ names: readonly unknown[] }, unknown>(
    new Database(settingsFor(database)).statements,
    'SELECT',
    ({ names }) => sql`select name, current_setting(name) as value from unnest(${names}::text[]) as name`,
  );

  expect(settings).toHaveLength(5);
  expect(await read({ names: settings.map(({ name }) => name) })).toEqual(settings);
});

test('a policy refuses statements, and hides no user from them', async () => {
  const owner = await start();
  const { id } = (await owner.call('POST', USERS, { email: freshAddress() })).body as UserBody;
  const role = `role_${id.replaceAll('-', '')}`;
  await owner.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`,
    `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`,
    'ALTER TABLE users ENABLE ROW LEVEL SECURITY',
  );
  const settings = {
    SVC_POSTGRES_USER: role,
    SVC_POSTGRES_PASSWORD: 'secret',
    SVC_POSTGRES_MIGRATE: 'false',
  };
  const service = await startService(settings, owner, { waitsUntilReady: false });
  const { status } = await service.call('GET', USERS + id);
  const events = await service.events();
  await service.stop();
  await owner.query(`DROP OWNED BY ${role}`, `DROP ROLE ${role}`);

  expect(status).toBeGreaterThanOrEqual(500);
  expect(events).toContainEqual(
    expect.objectContaining({ cause: expect.objectContaining({ code: '42501' }) }),
  );
});

test.runIf(await hasTransactionTimeout())(
  'a transaction that PostgreSQL ends at a limit of the database is 503',
  async () => {
    const { database, call } = await start("transaction_timeout = '500'");
    const { id } = (await call('POST', USERS, { email: freshAddress() })).body as UserBody;
    const user = `SELECT FROM users WHERE id = '${id}' FOR UPDATE`;
    const lock = await hold(database, 'SET LOCAL transaction_timeout = 0', user);
    const response = await call('PATCH', USERS + id, { full_name: 'Ada' });
    await lock.release();

    expect(response).toEqual(refusal('service_unavailable_error', USERS + id));
  },
);

/** PostgreSQL 17 and later. */
async function hasTransactionTimeout(): Promise<boolean> {
  const found = await inDatabase(
    inject('postgres'),
    "SELECT FROM pg_settings WHERE name = 'transaction_timeout'",
  );
  return found.length > 0;
}
