import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { maintain } from '../../lib/cleanup.ts';
import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { CHANGES, change, endOfFeed, readOn } from '../stage/changes.ts';
import { startDebianPostgres } from '../stage/debian-postgres.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { postingUnderKeys } from '../stage/keyed.ts';
import { hold } from '../stage/locks.ts';
import { blockOf, blocksOf } from '../stage/page-blocks.ts';
import { hastySettings } from '../stage/postgres.ts';
import { BATCH, TIMESTAMP, USERS, type UserBody } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';
import { clientEnvironment } from './client-environment.ts';

const ERASE = blockOf('infra/postgresql/erasure.md', 'Erase');
const BACK = blockOf('infra/postgresql/erasure.md', 'One user back');
const STATISTICS = blocksOf('infra/postgresql/erasure.md', 'Statistics of earlier versions', 2);

/** As the page recommends. PostgreSQL logs every statement with its parameters, as far as these settings let it. */
const SETTINGS = {
  ...hastySettings,
  log_error_verbosity: 'terse',
  log_min_duration_statement: 0,
  wal_recycle: 'off',
};

describe.each([
  ["Debian's", () => startDebianPostgres(SETTINGS), STATISTICS[1]],
  ['the embedded one', () => startDisposablePostgres({ settings: SETTINGS }), STATISTICS[0]],
] as const)('with PostgreSQL, %s,', (_which, startPostgres, statistics = '') => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  let issuer: Awaited<ReturnType<typeof startIssuer>>;
  let host: BuiltService;

  beforeAll(async () => {
    [server, issuer] = await Promise.all([startPostgres(), startIssuer()]);
    const database = { ...server, name: server.database };
    const variables = { SVC_LOG_LEVEL: 'debug', SVC_OTEL_ENABLED: 'true' };
    host = await startBuiltService(variables, { beside: { database, issuer } });
    return async () => void (await Promise.all([host.remove(), issuer.stop(), server.stop()]));
  });

  const call: BuiltService['call'] = (...request) => host.call(...request);
  const query = (...statements: string[]) => inDatabase(server, ...statements);

  /** Runs a block of the page by `psql` or `sh`, and returns its output. */
  async function run(input: string, program: string, ...words: readonly string[]): Promise<string> {
    const running = promisify(execFile)(program, words, { env: clientEnvironment(server) });
    running.child.stdin?.end(input);
    return (await running).stdout;
  }
  const runSql = (sql: string) => run(sql, 'psql', '-Xv', 'ON_ERROR_STOP=1');

  async function create(fields: object, key: string = randomBytes(8).toString('hex')): Promise<UserBody> {
    const response = await postingUnderKeys(call)(USERS, key, fields);
    expect(response.status).toBe(201);
    return response.body as UserBody;
  }

  test('the documented statements leave no value of a deleted user in a file or in an output', async () => {
    const [mark, kept] = [createMark(), createMark()];
    const values = (name: string) => ({
      email: `${mark}-${name}@example.com`,
      full_name: `${mark} ${name}`,
      external_id: `${mark}:${name}`,
    });
    // As in a database that an earlier version has analyzed.
    const columns = ['email', 'full_name', 'external_id'].map((name) => `ALTER ${name} SET STATISTICS -1`);
    await query(`ALTER TABLE users ${columns}; ALTER INDEX users_email_key ALTER 1 SET STATISTICS -1`);
    // Its row keeps the pages of the others.
    const living = await create(wideValues(kept));
    const created = await create(values('created'));
    await create(wideValues(mark));
    const items = [values('first'), values('second')];
    const refused = [{ email: `${mark} @` }, { ...values('refused'), full_name: mark.repeat(20) }];
    const taken = [{ ...values('taken'), email: values('created').email }, values('created')];
    const { email, external_id } = values('first');
    const statuses = [
      await call('POST', BATCH, { items }),
      await call('POST', BATCH, { items: [values('third'), ...refused, ...taken], mode: 'partial' }),
      await call('POST', BATCH, { items: [values('fourth'), values('created')] }),
      ...(await Promise.all([...refused, ...taken].map((body) => call('POST', USERS, body)))),
      await call('POST', USERS, { ...values('fifth'), external_id }),
      await call('PATCH', USERS + created.id, values('updated')),
      await call('PATCH', USERS + created.id, { email }),
      await call('PATCH', USERS + created.id, { external_id }),
      await call('GET', `${USERS}?email=${encodeURIComponent(email)}`),
      await call('GET', `${USERS}?external_id=${encodeURIComponent(external_id)}`),
      await call('GET', USERS + encodeURIComponent(email)),
    ].map(({ status }) => status);
    expect(statuses).toEqual([201, 200, 409, 422, 422, 409, 409, 409, 200, 409, 409, 200, 200, 422]);
    await query('ANALYZE users');
    const all = (await call('GET', `${USERS}?limit=1000`)).body as readonly UserBody[];
    for (const { id } of all.filter(({ id }) => id !== living.id))
      expect((await call('DELETE', USERS + id)).status).toBe(204);
    await call('GET', CHANGES);
    await query("UPDATE user_changes SET time = time - interval '31 days'");
    await query("UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'");
    await maintain(readSettings(host.environment));
    await query("DELETE FROM kysely_migration WHERE name = '0009-erasure'");
    await runMigrations(readSettings(host.environment).postgres);
    await query('VACUUM ANALYZE users', 'CHECKPOINT');
    // The search finds marks in the table, its TOAST table, an index, the TOAST table of the statistics and the WAL.
    const places = await filesOf("'users'", 'reltoastrelid', "'users_email_key'", "'pg_toast.pg_toast_2619'");
    expect(filesWith(mark)).toEqual(expect.arrayContaining([...places, expect.stringContaining('/pg_wal/')]));

    await runSql(statistics);
    expect(await runSql(ERASE)).toContain('CHECKPOINT');
    await query('REINDEX TABLE CONCURRENTLY users', 'ANALYZE users', 'SELECT pg_switch_wal()', 'CHECKPOINT');

    expect(filesWith(mark)).toEqual([]);
    expect(filesWith(kept)).toEqual(expect.arrayContaining(await filesOf("'users'", "'users_email_key'")));
    expect(filesWith('duplicate key value')).toContain('server.log');
    expect(
      await query("SELECT attname FROM pg_stats WHERE attname IN ('email', 'full_name', 'lower')"),
    ).toEqual([]);
    const lines = (host.printed() + host.errors()).split('\n');
    expect(lines.filter((line) => line.includes(mark))).toEqual([]);
    expect([host.events('user_created').length, host.spans().length > 20]).toEqual([6, true]);
  });

  test('the documented statement brings one user back, beside the running service', async () => {
    const fields = { email: 'ADA@example.com', full_name: `Ada "\\' 😀\n$1`, external_id: "hr-'1" };
    const created = await create(fields, 'of-ada');
    const { id } = created;
    await call('PATCH', USERS + id, { is_active: false });
    const unlucky = await create({ email: 'grace@example.com', external_id: 'hr-2' });
    await startCopy();
    await call('PATCH', USERS + id, { email: 'new@example.com' });
    const start = await endOfFeed(call);
    for (const deleted of [id, unlucky.id]) await call('DELETE', USERS + deleted);

    const restoredVersion = await expectRestored(id);
    const read = await call('GET', USERS + id);
    expect(read.headers.etag).toBe(`"${restoredVersion}"`);
    const restored = {
      ...created,
      ...fields,
      is_active: false,
      updated_at: expect.stringMatching(TIMESTAMP),
    };
    expect(read.body).toEqual(restored);
    const { changes } = await readOn(call, start);
    expect(changes).toEqual([
      change('user.deleted', created, 4),
      change('user.deleted', unlucky, 2),
      { ...change('user.created', created, restoredVersion), time: (read.body as UserBody).updated_at },
    ]);
    expect(changes.at(-1)?.data.actor).toBe('operator');
    const replay = await postingUnderKeys(call)(USERS, 'of-ada', fields);
    expect(replay).toMatchObject({
      status: 201,
      headers: { 'idempotency-replayed': 'true' },
      body: restored,
    });

    const other = await create({ email: 'Grace@Example.com' });
    expect(await restore(unlucky.id)).toContain('refused, taken: email\n');
    await call('PATCH', USERS + other.id, { external_id: 'hr-2' });
    expect(await restore(unlucky.id)).toContain('refused, taken: email, external_id\n');
    expect(await restore(id)).toContain('refused, taken: id, email, external_id\n');
    expect(await restore(other.id)).toContain('refused: the copy has no such user\n');
    expect((await call('GET', USERS + unlucky.id)).status).toBe(404);
    await call('DELETE', USERS + other.id);

    // The copy is of 1.1.0.
    await inDatabase({ ...server, database: 'users_restored' }, 'ALTER TABLE users DROP COLUMN external_id');
    let version = 1;
    for (const _life of [1, 2, 3]) {
      // The history has lost the deletion.
      await call('GET', CHANGES);
      await query(`DELETE FROM user_changes WHERE user_id = '${unlucky.id}'`);
      const next = await expectRestored(unlucky.id);
      expect((await readOn(call, start)).changes.at(-1)).toEqual(change('user.created', unlucky, next));
      const old = { headers: { 'if-match': `"${version}", "${version + 1}"` } };
      expect((await call('PATCH', USERS + unlucky.id, {}, old)).status).toBe(412);
      expect((await call('PATCH', USERS + unlucky.id, {})).headers.etag).toBe(`"${next + 1}"`);
      expect((await call('DELETE', USERS + unlucky.id)).status).toBe(204);
      version = next;
    }
    await call('GET', CHANGES);
    await query(`UPDATE user_changes SET version = ${2 ** 52} WHERE user_id = '${unlucky.id}'`);
    expect(await expectRestored(unlucky.id)).toBe(2 ** 52 + 1);
  });

  test('of two restores of one user at one moment, one is refused and names what is taken', async () => {
    const { id } = await create({ email: 'alan@example.com' });
    await query('DROP DATABASE users_restored WITH (FORCE)');
    await startCopy();
    expect((await call('DELETE', USERS + id)).status).toBe(204);
    const other = await hold(server, `INSERT INTO users (id, email) VALUES ('${id}', 'alan@example.com')`);
    const refused = restore(id);
    const isWaiting =
      "SELECT FROM pg_stat_activity WHERE application_name = 'psql' AND wait_event_type = 'Lock'";
    await until('it waits for the other one', async () => (await query(isWaiting)).length > 0);
    await other.commit();

    expect(await refused).toContain('refused, taken: id, email\n');
  });

  const restore = (id: string) => run(BACK.replace(/(?<= id=)\S+/, id), 'sh', '-eu');

  async function expectRestored(id: string): Promise<number> {
    const printed = await restore(id);
    expect(printed).toMatch(/ restored as version \d+\n/);
    return Number(/restored as version (\d+)/.exec(printed)?.[1]);
  }

  async function startCopy(): Promise<void> {
    const [row] = await query('SELECT jsonb_agg(users)::text AS copy FROM users');
    await query('CREATE DATABASE users_restored');
    await runMigrations({ ...readSettings(host.environment).postgres, database: 'users_restored' });
    await inDatabase(
      { ...server, database: 'users_restored' },
      `INSERT INTO users SELECT * FROM jsonb_populate_recordset(null::users, ${pg.escapeLiteral(String(row?.copy))})`,
    );
  }

  /** The files of relations, by expressions over the entry of `users` in pg_class. */
  async function filesOf(...relations: readonly string[]): Promise<string[]> {
    const paths = relations.map((relation) => `pg_relation_filepath((${relation})::regclass)`);
    const rows = await query(
      `SELECT unnest(ARRAY[${paths}]) AS path FROM pg_class WHERE oid = 'users'::regclass`,
    );
    return rows.map(({ path }) => `cluster/${path}`);
  }

  /** The files of the server, its log included, that contain a text in any case. */
  function filesWith(text: string): readonly string[] {
    const folder = realpathSync(server.dataFolder);
    // PostgreSQL compresses long values. It keeps eight characters in a row of a text that is new to it.
    const windows = Array.from({ length: text.length - 7 }, (_, start) => text.slice(start, start + 8));
    const sought = new RegExp(windows.join('|'), 'i');
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('/native-'))
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((file) => sought.test(readFileSync(file, 'latin1')))
      .map((file) => relative(folder, file));
  }
});

const createMark = () => `Mk${randomBytes(7).toString('hex')}`;

/** Values that PostgreSQL stores in the TOAST table: of characters of four bytes that it cannot compress. */
function wideValues(mark: string) {
  const wide = String.fromCodePoint(...Array.from({ length: 220 }, () => 0x20000 + randomInt(0xa000)));
  return { email: `${mark}${wide}@example.com`, full_name: mark + wide, external_id: wide + mark };
}
