import { expect, onTestFinished, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { freshAddress, type ServiceResponse, USERS, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

const userIn = ({ body }: ServiceResponse) => body as UserBody;

/** A service whose role does not own its tables and has exactly the privileges of the page. */
async function startAsGranted(settings: Variables = {}) {
  const owner = await forThisTest(startService);
  const { database } = owner;
  const role = `service_${database.name}`;
  const run = (sql: string) => database.query(sql.replaceAll(' service;', ` ${role};`));
  await database.query(`CREATE ROLE ${role} LOGIN`);
  await run(blockOf('infra/postgresql/README.md', 'Privileges'));
  const variables = { ...settings, SVC_POSTGRES_USER: role, SVC_POSTGRES_MIGRATE: 'false' };
  const service = await startService(variables, owner, { waitsUntilReady: false });
  onTestFinished(async () => {
    await service.stop();
    await database.query(`DROP OWNED BY ${role}`, `DROP ROLE ${role}`);
  });
  return { ...service, run };
}

test('a role with exactly the documented privileges serves every operation', async () => {
  const { call, events } = await startAsGranted();
  const created = await call(
    'POST',
    USERS,
    { email: freshAddress() },
    { headers: { 'Idempotency-Key': 'one' } },
  );
  const { id, email } = userIn(created);
  const statuses = [
    created,
    await call('GET', '/ready'),
    await call('GET', USERS),
    await call('GET', `${USERS}?email=${encodeURIComponent(email)}`),
    await call('PATCH', USERS + id, { full_name: 'Changed', external_id: id }),
    await call('POST', `${USERS}batch`, { items: [{ email: freshAddress() }, { email: freshAddress() }] }),
    await call('GET', `${USERS}changes`),
    await call('GET', `${USERS}${id}/changes`),
    await call('DELETE', USERS + id),
    await call('GET', `${USERS}changes`),
  ].map(({ status }) => status);

  expect(statuses).toEqual([201, 200, 200, 200, 200, 201, 200, 200, 204, 200]);
  expect((await events()).filter(({ level }) => level !== 'info')).toEqual([]);
});

test.each([
  ['INSERT', 'users'],
  ['UPDATE', 'user_changes_head'],
  ['SELECT', 'idempotency_keys'],
  ['SELECT', 'user_changes'],
  ['INSERT', 'user_changes_unnumbered'],
  ['DELETE', 'user_changes_unnumbered'],
  ['USAGE', 'user_changes_unnumbered_sequence_seq'],
])(
  'without %s on %s, /ready is 503 and names the privilege until it is granted',
  async (privilege, table) => {
    const { call, run, events } = await startAsGranted();
    const [on, role] = privilege === 'USAGE' ? [`SEQUENCE ${table}`, 'PUBLIC'] : [table, 'service'];
    await run(`REVOKE ${privilege} ON ${on} FROM ${role};`);
    const refused = await call('GET', '/ready');
    const [refusal] = (await events()).filter(({ event }) => event === 'app_error');
    await run(`GRANT ${privilege} ON ${on} TO service;`);

    expect(refused.status).toBe(503);
    expect(refusal).toMatchObject({
      message: `not ready: the role lacks the privileges ${privilege} on ${table}`,
    });
    expect((await call('GET', '/ready')).status).toBe(200);
  },
);

test.each([
  [
    'without SELECT on kysely_migration',
    'REVOKE SELECT ON kysely_migration FROM service',
    'GRANT SELECT ON kysely_migration TO service',
    /^not ready: permission denied for table kysely_migration$/,
  ],
  [
    'without the sequence of changes',
    'ALTER SEQUENCE user_changes_unnumbered_sequence_seq RENAME TO other',
    'ALTER SEQUENCE other RENAME TO user_changes_unnumbered_sequence_seq',
    /^not ready: the role lacks the privileges USAGE on user_changes_unnumbered_sequence_seq$/,
  ],
  [
    'with a policy that may hide users',
    'ALTER TABLE users ENABLE ROW LEVEL SECURITY',
    'ALTER TABLE users DISABLE ROW LEVEL SECURITY',
    /^not ready: policies may hide rows from the role \(row_security_active\): users$/,
  ],
])(
  '%s, /ready is 503 with the reason, although other sessions respond',
  async (_case, fault, repair, reason) => {
    const { call, run, events } = await startAsGranted({ SVC_POSTGRES_POOLER: 'transaction' });
    expect((await call('GET', '/ready')).status).toBe(200);
    await run(`${fault};`);
    const [refused] = await Promise.all([call('GET', '/ready'), call('GET', USERS)]);
    const message = (await events()).filter(({ path }) => path === '/ready').map((event) => event.message);
    await run(`${repair};`);

    expect([refused.status, ...message]).toEqual([503, expect.stringMatching(reason)]);
    expect((await call('GET', '/ready')).status).toBe(200);
  },
);

test('a statement that is refused for a lacking privilege is 503, and a missing DELETE a warning', async () => {
  const { call, run, events } = await startAsGranted();
  await run('REVOKE DELETE ON users FROM service;');
  const { id } = userIn(await call('POST', USERS, { email: freshAddress() }));
  const statuses = [await call('DELETE', USERS + id), await call('GET', '/ready')];
  await call('GET', '/ready');

  expect(statuses.map(({ status }) => status)).toEqual([503, 200]);
  const logged = (await events()).filter(({ event }) => /app_error|privilege/.test(String(event)));
  expect(logged).toMatchObject([
    {
      message: 'PostgreSQL cannot answer: 42501: permission denied for table users',
      cause: { code: '42501', message: 'permission denied for table users' },
    },
    { event: 'privilege_missing', level: 'warning', privilege: 'DELETE', table: 'users' },
  ]);
});

test('the documented statements update a user with its change, and set the sequence of changes', async () => {
  const service = await forThisTest(startService);
  const { id } = userIn(await service.call('POST', USERS, { email: freshAddress() }));
  const statement = blockOf('infra/postgresql/README.md', 'Statements of your own');
  const update = statement.replace(/'0{8}-[\d-]+'/, `'${id}'`);
  await service.database.query(update);
  const read = await service.call('GET', USERS + id, undefined, { headers: { 'If-None-Match': '"1"' } });
  const setSequence = blockOf('infra/postgresql/README.md', 'Logical replication');
  const [{ setval } = {}] = await service.database.query(setSequence);
  await service.call('DELETE', USERS + id);

  expect(Number(setval)).toBeGreaterThan(1_000_000);
  expect([read.status, read.headers.etag]).toEqual([200, '"2"']);
  expect(read.body).toMatchObject({ email: 'new@example.com' });
  expect((await service.call('GET', `${USERS}${id}/changes`)).body).toMatchObject([
    { type: 'user.created' },
    { type: 'user.updated', data: { version: 2, changed: ['email'], actor: 'operator' } },
    { type: 'user.deleted' },
  ]);
});

test('a role and a database that the page for AWS creates can have the tables', async () => {
  const { database, issuer } = await forThisTest(startService);
  const name = `${database.name}_aws`;
  const statements = blockOf('infra/lambda/README.md', 'First deployment, sql').replaceAll(
    /\busers\b/g,
    name,
  );
  await database.query(...statements.trimEnd().split('\n'));
  onTestFinished(
    async () => void (await database.query(`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${name}`)),
  );
  const variables = { SVC_POSTGRES_USER: name, SVC_POSTGRES_PASSWORD: '…', SVC_POSTGRES_DB: name };
  const service = await forThisTest(startService, variables, { database, issuer });

  expect((await service.call('POST', USERS, { email: freshAddress() })).status).toBe(201);
});

test('an older state of the database is migrated at once, and an empty one only later', async () => {
  const service = await forThisTest(startService);
  const { database } = service;
  const migrated = async () =>
    (await service.events()).filter(({ event }) => event === 'database_migrated').length;
  await until('it is migrated', async () => (await migrated()) === 1);
  await database.query('DELETE FROM kysely_migration WHERE name = (SELECT max(name) FROM kysely_migration)');
  await until('it is migrated again', async () => (await migrated()) === 2);
  expect((await service.call('GET', '/ready')).status).toBe(200);

  await database.query('DROP SCHEMA public CASCADE', 'CREATE SCHEMA public');
  await until('it is reported', async () =>
    (await service.events()).some(({ event }) => event === 'database_empty'),
  );
  const statuses = [await service.call('GET', '/ready'), await service.call('GET', USERS)];
  expect(statuses.map(({ status }) => status)).toEqual([503, 503]);
  expect(await migrated()).toBe(2);
});
