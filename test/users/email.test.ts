import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const { call, createUser } = serviceUnderTest();
let path: string;

beforeAll(async () => {
  path = USERS + (await createUser()).id;
});

const create = (body: unknown) => call('POST', USERS, body);
const find = (email: string) => call('GET', `${USERS}?email=${encodeURIComponent(email)}`);

/** A refusal of the email alone, with any number of faults. */
async function expectRefused(email: unknown): Promise<void> {
  for (const [method, to] of [
    ['POST', USERS],
    ['PATCH', path],
  ] as const) {
    const response = await call(method, to, { email });
    expect(response).toEqual(refusal('validation_error', to, { errors: 'any' }));
    const { errors } = response.body as { errors: readonly Record<string, string>[] };
    expect(new Set(errors.map(({ pointer }) => pointer))).toEqual(new Set(['#/email']));
  }
}

describe('an email is stored and returned as given', () => {
  test.each([
    ['a@b', 'the shortest'],
    ['Ada.Lovelace+notes@Example.COM', 'both cases'],
    ["o'hara@example.com", 'a quotation mark'],
    ['"quoted"@example.com', 'two of them'],
    ['.@.', 'dots'],
    ['a@localhost', 'one label'],
    ['a@[IPv6:2001:db8::1]', 'an address literal'],
    ['%00@example.com', 'an escape'],
    ["'); DROP TABLE users;--@example.com".replaceAll(' ', '_'), 'SQL'],
    ['<script>alert(1)</script>@example.com', 'HTML'],
    ['$' + '{jndi:ldap://x/a}@example.com', 'an expression'],
    ['\\u0000@example.com', 'a backslash'],
    ['zoë@bücher.example', 'letters beyond ASCII, composed'],
    ['zoe\u0308@bu\u0308cher.example', 'the same, decomposed'],
    ['用户@例子.广告', 'Chinese'],
    ['👩‍👩‍👧@🌍.example', 'characters beyond the BMP'],
    ['null@null', 'words'],
    [`${'x'.repeat(253)}@y`, '255 characters'],
    [`x@${'y'.repeat(253)}`, '255 characters, most of them in the domain'],
    [`${'🌍'.repeat(253)}@🌍`, '255 characters beyond the BMP'],
  ])('%s (%s)', async (email) => {
    const created = await create({ email });
    const { id } = created.body as UserBody;

    expect(created).toEqual(success(201, user({ email }), { location: USERS + id, etag: '"1"' }));
    expect((await call('GET', USERS + id)).body).toEqual(created.body);
    expect((await call('DELETE', USERS + id)).status).toBe(204);
  });
});

describe('an email is 422', () => {
  test.each([
    ['empty', ''],
    ['without @', 'ada.example.com'],
    ['without anything before @', '@example.com'],
    ['without anything after @', 'ada@'],
    ['only @', '@'],
    ['with two @', 'ada@home@example.com'],
    ['with a space before it', ' ada@example.com'],
    ['with a space after it', 'ada@example.com '],
    ['with a space in it', 'ada lovelace@example.com'],
    ['with a tab', 'ada\t@example.com'],
    ['with a line feed', 'ada@example.com\n'],
    ['with a carriage return', 'ada@example.com\r\nBcc: x'],
    ['with a vertical tab', 'ada\v@example.com'],
    ['with a no-break space', 'ada\u00a0@example.com'],
    ['with an em space', 'ada\u2003@example.com'],
    ['with an ideographic space', 'ada\u3000@example.com'],
    ['with a line separator', 'ada\u2028@example.com'],
    ['with an ogham space mark', 'ada\u1680@example.com'],
    ['with U+0000', 'ada\0@example.com'],
    ['with U+0001', 'ada\u0001@example.com'],
    ['with U+001B', 'ada\u001b[31m@example.com'],
    ['with U+007F', 'ada\u007f@example.com'],
    ['with U+0085', 'ada\u0085@example.com'],
    ['with U+009F', 'ada\u009f@example.com'],
    ['with a lone high surrogate', 'ada\ud83c@example.com'],
    ['with a lone low surrogate', 'ada\udf0d@example.com'],
    ['with surrogates the wrong way round', 'ada\udf0d\ud83c@example.com'],
    ['of 256 characters', `${'x'.repeat(254)}@y`],
    ['of 256 characters beyond the BMP', `${'🌍'.repeat(254)}@🌍`],
    ['of 60,000 characters', `${'x'.repeat(60_000)}@y`],
  ])('%s', async (_case, email) => {
    await expectRefused(email);
  });

  test.each([
    ['a number', 42],
    ['a boolean', true],
    ['an array', ['ada@example.com']],
    ['an object', { address: 'ada@example.com' }],
  ])('if it is %s', async (_case, email) => {
    await expectRefused(email);
  });

  test('if it is absent or null on create', async () => {
    const expected = refusal('validation_error', USERS, { errors: ['#/email'] });

    expect(await create({})).toEqual(expected);
    expect(await create({ email: null })).toEqual(expected);
    expect(await create({ Email: freshAddress() })).toEqual(expected);
  });
});

describe('an email is unique and found without regard to case', () => {
  test.each([
    ['Ada@Example.com', 'aDA@eXAMPLE.COM'],
    ['zoë@Ünïcode.example', 'ZOË@üNÏCODE.EXAMPLE'],
    ['юлия@пример.example', 'ЮЛИЯ@ПРИМЕР.EXAMPLE'],
    ['άλφα@example.com', 'ΆΛΦΑ@EXAMPLE.COM'],
    ['οδυσσευς@example.com', 'ΟΔΥΣΣΕΥΣ@EXAMPLE.COM'],
    ['straße@example.com', 'STRAẞE@EXAMPLE.COM'],
    ['ǆ@example.com', 'Ǆ@example.com'],
    ['հայ@example.com', 'ՀԱՅ@example.com'],
    ['𐐨@example.com', '𐐀@example.com'],
  ])('%s and %s', async (first, second) => {
    const created = await create({ email: first });

    expect([created.status, (created.body as UserBody).email]).toEqual([201, first]);
    expect(await create({ email: second })).toEqual(refusal('conflict_error', USERS));
    expect(await call('PATCH', path, { email: second })).toEqual(refusal('conflict_error', path));
    expect(await find(second)).toEqual(success(200, [created.body]));
  });

  test.each([
    ['ada@example.com', 'adá@example.com'],
    ['zoë@example.net', 'zoe\u0308@example.net'],
    ['a.b@example.net', 'ab@example.net'],
    ['a+b@example.net', 'a@example.net'],
    ['a_b@example.net', 'a-b@example.net'],
    ['a%@example.net', 'a%%@example.net'],
  ])('but with regard to everything else: %s and %s', async (first, second) => {
    await create({ email: first });
    const created = await create({ email: second });

    expect(created.status).toBe(201);
    expect(await find(second)).toEqual(success(200, [created.body]));
  });

  test('and its owner can change its case', async () => {
    const { body } = await create({ email: 'case@example.com' });
    const own = USERS + (body as UserBody).id;

    expect((await call('PATCH', own, { email: 'Case@Example.com' })).body).toMatchObject({
      email: 'Case@Example.com',
    });
  });

  test('and another user can take it after its owner changed it or was deleted', async () => {
    const email = freshAddress();
    const first = USERS + ((await create({ email })).body as UserBody).id;
    await call('PATCH', first, { email: freshAddress() });
    const second = await create({ email });
    await call('DELETE', USERS + (second.body as UserBody).id);

    expect([second.status, (await create({ email })).status]).toEqual([201, 201]);
  });

  test('with any locale of the database', async () => {
    const name = `test_${randomBytes(8).toString('hex')}`;
    const { host, port, user: account, password, database } = inject('postgres');
    const admin = new pg.Client({ host, port, user: account, password, database, ssl: false });
    await admin.connect();
    await admin.query(
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C' STRATEGY FILE_COPY`,
    );
    const other = await startService({ SVC_POSTGRES_DB: name });
    const statuses = [];
    for (const email of ['ZOË@example.com', 'zoë@example.com']) {
      statuses.push((await other.call('POST', USERS, { email })).status);
    }
    await other.stop();
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();

    expect(statuses).toEqual([201, 409]);
  });
});
