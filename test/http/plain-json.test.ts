import { randomUUID } from 'node:crypto';
import { setImmediate as nextPass } from 'node:timers/promises';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { type Field, fields, isOmittedIfNull } from '../../lib/users/fields.ts';
import type { User } from '../../lib/users/user.ts';
import { fc } from '../stage/fast-check.ts';
import { addressOf, startProxy, through } from '../stage/proxy.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

/** A user whose times are numbers, in milliseconds since 1970. */
type AnyUser = Omit<User, 'created_at' | 'updated_at'> & {
  readonly created_at: number;
  readonly updated_at: number;
};

/** A time of which PostgreSQL reads the text of Date. */
const anyMoment = fc.integer({ min: Date.parse('0001-01-01'), max: Date.parse('9999-12-31') });
/** Texts with every character that JSON escapes and that PostgreSQL can store, and with characters of several bytes. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 100 }).filter((text) => text.isWellFormed() && !text.includes('\0')),
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom('"', '\\', '\b', '\u001f', '\u007f', '\u2028', '\ufeff', '<', '/', 'ß', '€'),
  }),
);

const ANY = { uuid: fc.uuid(), text: anyText, boolean: fc.boolean(), timestamptz: anyMoment };

const anyValue = ({ sqlType, onCreate }: Field) =>
  onCreate === 'optional' ? fc.option<unknown>(ANY[sqlType]) : ANY[sqlType];

/** Any user, also one that was never updated. */
const anyUser = fc
  .record({
    ...Object.fromEntries(fields.map((field) => [field.name, anyValue(field)])),
    version: fc.constant('1'),
  })
  .map((user) => user as unknown as AnyUser)
  .chain((user) => fc.constantFrom(user, { ...user, updated_at: user.created_at }));

/** A user as in a response: times in UTC with milliseconds. */
function representation(user: AnyUser): Record<string, unknown> {
  const shown = fields.filter((field) => user[field.name] !== null || !isOmittedIfNull(field));
  return Object.fromEntries(
    shown.map(({ name, sqlType }) => {
      const value = user[name];
      return [name, sqlType === 'timestamptz' ? new Date(value as number).toISOString() : value];
    }),
  );
}

/** Lengths of pieces, in bytes: within the head of a message, within its fields, and of several messages. */
const PIECES = [1, 4, 700, 2, 3000, 33, 11, 9000, 5, 150];

// PostgreSQL's bytes arrive in pieces that end anywhere.
const proxy = await startProxy(inject('postgres'));
afterAll(() => proxy.stop());
let turn = 0;
proxy.answersThrough(() =>
  through(async (chunk, push) => {
    for (let at = 0; at < chunk.length; turn += 1) {
      const end = at + (PIECES[turn % PIECES.length] as number);
      push(chunk.subarray(at, end));
      at = end;
      await nextPass();
    }
  }),
);

const service = serviceUnderTest(() => addressOf(proxy));

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
    time: fc
      .date({ min: new Date('3000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((time) => time.toISOString()),
  }),
  { minLength: 1, maxLength: 50 },
);
type Changes = ReturnType<typeof anyChanges.generate>['value'];

describe('the list, a user and the changes equal JSON.stringify byte for byte', () => {
  test('with any content', async () => {
    await fc.assert(
      fc.asyncProperty(anyUsers, anyChanges, async (users, changes) => {
        await expectPlainResponses(await store(users, changes));
      }),
      { numRuns: 40 },
    );
  });

  test.each(fc.sample(fc.tuple(anyUser, anyChanges), 1))(
    'with 1,000 users whose texts are the longest, and times of many days',
    async (one, changes) => {
      const begin = Date.UTC(1970, 0);
      const users = Array.from({ length: 1000 }, (_, index) => ({
        ...one,
        ...(index % 2 === 0 && { email: '\u0001'.repeat(250), full_name: '田"'.repeat(127) }),
        id: randomUUID(),
        // Some days with the same place in the cache follow each other, before and after 1970.
        created_at: begin + (index % 7) * 256 * 86_400_000 + index,
        updated_at: begin - (index % 3) * 86_400_000 - index * 1001,
      }));

      await expectPlainResponses(await store(users, changes));
    },
  );
});

test.each(fc.sample(fc.tuple(anyUsers, anyChanges), 1))(
  'a page with a user that cannot be written is 500, and nothing of it is in the next one',
  async (users, changes) => {
    const stored = await store(users, changes);
    await service.database.query(
      `INSERT INTO users (id, email, updated_at) VALUES (gen_random_uuid(), 'a@b', 'infinity')`,
    );
    const { status } = await get(USERS);
    await service.database.query(`DELETE FROM users WHERE email = 'a@b'`);

    expect(status).toBe(500);
    await expectPlainResponses(stored);
  },
);

/** Replaces the stored users. Each has an email and an external ID of its own. */
async function store(given: readonly AnyUser[], changes: Changes) {
  const users = given
    .map((user, index) => ({
      ...user,
      email: `${user.email}@${index}`,
      external_id: user.external_id === null ? null : `${user.external_id}@${index}`,
    }))
    .toSorted((one, other) => one.created_at - other.created_at || (one.id < other.id ? -1 : 1))
    .map(representation);
  const json = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'`;
  const columns = fields.map(({ name }) => name).join();
  await service.database.query(
    'TRUNCATE users, user_changes, user_changes_unnumbered',
    'UPDATE user_changes_head SET position = 0, expired = 0',
    `INSERT INTO users (${columns})
    SELECT ${columns} FROM json_populate_recordset(null::users, ${json(users)})`,
    `INSERT INTO user_changes (position, user_id, version, type, changed, actor, request_id, time, identity)
    SELECT position, user_id, version, type, changed, actor, request_id, time, identity
    FROM json_populate_recordset(null::user_changes, ${json(changes.map((change, index) => ({ ...change, position: index + 1 })))})`,
    `UPDATE user_changes_head SET position = ${changes.length}`,
  );
  return { users, changes };
}

async function expectPlainResponses({ users, changes }: Awaited<ReturnType<typeof store>>) {
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
  const text = async (path: string) => (await get(path)).text();
  expect(await text(`${USERS}?limit=1000`)).toBe(JSON.stringify(users));
  expect(await text(`${USERS}${users[0]?.id}`)).toBe(JSON.stringify(users[0]));
  expect(await text(`${USERS}changes?limit=1000`)).toBe(JSON.stringify(events));
}

function get(path: string): Promise<Response> {
  return fetch(service.url + path, { headers: { authorization: service.authorization } });
}
