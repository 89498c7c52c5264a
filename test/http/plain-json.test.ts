import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const service = serviceUnderTest();
const admin = administratorOf(service);

/** Values that are hard for a writer of JSON, or that PostgreSQL may convert. */
const anyText = fc.oneof(
  fc.string({
    unit: fc.constantFrom('"', '\\', '/', '<', '\u0001', '\b', '\f', '\n', '\u001f', '\u007f', 'a'),
  }),
  fc.string({
    unit: fc.constantFrom('\u0080', 'ÿ', 'ß', '\u2028', '\u2029', '\ufeff', '\ufffd', '田', '😀', '€'),
  }),
  fc.string({ unit: 'binary', maxLength: 100 }).filter((text) => text.isWellFormed() && !text.includes('\0')),
);
const momentSince = (first: string) =>
  fc
    .date({ min: new Date(first), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
    .map((date) => date.toISOString());
const anyUser = fc.record({
  id: fc.uuid(),
  email: anyText,
  full_name: fc.option(anyText),
  is_active: fc.boolean(),
  created_at: momentSince('0001-01-01T00:00:00Z'),
  updated_at: momentSince('0001-01-01T00:00:00Z'),
});
const anyUsers = fc.uniqueArray(anyUser, { minLength: 1, maxLength: 50, selector: ({ id }) => id });
const anyChanges = fc.array(
  fc.record({
    user_id: fc.uuid(),
    version: fc.maxSafeNat(),
    type: fc.constantFrom(1, 2, 3),
    changed: fc.nat(7),
    actor: anyText,
    request_id: anyText,
    identity: fc.integer(),
    // None that is old enough to be deleted.
    time: momentSince('3000-01-01T00:00:00Z'),
  }),
  { minLength: 1, maxLength: 50 },
);
type Generated<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;
type Users = Generated<typeof anyUsers>;
type Changes = Generated<typeof anyChanges>;

/** Settings that a role or a database can give to every session. */
const settings = [
  ['datestyle', 'ISO, YMD'],
  ['datestyle', 'German'],
  ['datestyle', 'SQL, DMY'],
  ['datestyle', 'Postgres, MDY'],
  ['timezone', 'Asia/Kathmandu'],
  ['timezone', '<+0030>-00:30'],
  ['client_encoding', 'LATIN1'],
  ['client_encoding', 'WIN1252'],
  ['client_encoding', 'SJIS'],
  ['client_encoding', 'SQL_ASCII'],
  ['bytea_output', 'escape'],
  ['extra_float_digits', '-15'],
] as const;

describe('the list, a user and the changes equal JSON.stringify byte for byte', () => {
  test('with any content', async () => {
    await fc.assert(
      fc.asyncProperty(anyUsers, anyChanges, async (users, changes) => {
        const stored = await store(users, changes);
        expect(await responses(stored.users[0].id)).toEqual(plainAnswers(stored));
      }),
      { numRuns: 25 },
    );
  });

  test.each(settings)('if %s is %s', async (name, value) => {
    const [[users, changes] = [[], []]] = fc.sample(fc.tuple(anyUsers, anyChanges), 1);
    const stored = await store(users, changes);
    await admin.setForSessions(name, value, { isOnly: true });
    await until('it reads again', async () => (await get(USERS)).ok);
    expect(await responses(stored.users[0].id)).toEqual(plainAnswers(stored));
  });
});

/** Replaces the stored users. Each has an email of its own. */
async function store(given: Users, changes: Changes) {
  const users = given
    .map((user, index) => ({ ...user, email: user.email + index }))
    .toSorted((one, other) => (one.created_at + one.id < other.created_at + other.id ? -1 : 1));
  const json = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'`;
  await admin.query(`TRUNCATE users, user_changes, user_changes_unnumbered`);
  await admin.query(`UPDATE user_changes_head SET position = 0, expired = 0`);
  await admin.query(`INSERT INTO users (id, email, full_name, is_active, created_at, updated_at)
    SELECT id, email, full_name, is_active, created_at, updated_at
    FROM json_populate_recordset(null::users, ${json(users)})`);
  await admin.query(`INSERT INTO user_changes (position, user_id, version, type, changed, actor, request_id, time, identity)
    SELECT position, user_id, version, type, changed, actor, request_id, time, identity
    FROM json_populate_recordset(null::user_changes, ${json(changes.map((change, index) => ({ ...change, position: index + 1 })))})`);
  await admin.query(`UPDATE user_changes_head SET position = ${changes.length}`);
  return { users: users as unknown as readonly [Users[number]], changes };
}

function plainAnswers({ users, changes }: Awaited<ReturnType<typeof store>>) {
  const events = changes.map(
    ({ user_id, time, type, version, changed, actor, request_id, identity }, index) => ({
      specversion: '1.0',
      id: `${index + 1}-${(identity >>> 0).toString(16).padStart(8, '0')}`,
      source: '/api/v1/users',
      type: ['user.created', 'user.updated', 'user.deleted'][type - 1],
      subject: user_id,
      time,
      datacontenttype: 'application/json',
      data: {
        version,
        changed: ['email', 'full_name', 'is_active'].filter((_, bit) => changed & (2 ** bit)),
        actor,
        request_id,
      },
    }),
  );
  return { list: JSON.stringify(users), user: JSON.stringify(users[0]), changes: JSON.stringify(events) };
}

async function responses(id: string) {
  const text = async (path: string) => (await get(path)).text();
  return {
    list: await text(`${USERS}?limit=1000`),
    user: await text(USERS + id),
    changes: await text(`${USERS}changes?limit=1000`),
  };
}

async function get(path: string): Promise<Response> {
  return fetch(service.url + path, { headers: { authorization: `Bearer ${await service.issuer.sign()}` } });
}
