import { beforeAll, describe, expect, inject, test } from 'vitest';
import { BATCH, freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const { call, createUser } = serviceUnderTest();
let path: string;

beforeAll(async () => {
  path = USERS + (await createUser()).id;
});

const create = (body: unknown) => call('POST', USERS, body);

test.each([
  ['a@b', 'the shortest'],
  ['Ada.Lovelace+notes@Example.COM', 'both cases'],
  ['"quoted"@example.com', 'quotation marks'],
  ['.@.', 'dots'],
  ['a@[IPv6:2001:db8::1]', 'an address literal'],
  ['%00@example.com', 'an escape'],
  ['\\u0000@example.com', 'a backslash'],
  ['zoë@bücher.example', 'letters beyond ASCII, composed'],
  ['zoe\u0308@bu\u0308cher.example', 'the same, decomposed'],
  ['👩‍👩‍👧@🌍.example', 'characters beyond the BMP'],
  [`${'x'.repeat(253)}@y`, '255 characters'],
  [`x@${'y'.repeat(253)}`, '255 characters, most of them in the domain'],
  [`${'🌍'.repeat(253)}@🌍`, '255 characters beyond the BMP'],
])('an email is stored and returned as given: %s (%s)', async (email) => {
  const created = await create({ email });
  const { id } = created.body as UserBody;

  expect(created).toEqual(success(201, user({ email }), { location: USERS + id, etag: '"1"' }));
  expect((await call('GET', USERS + id)).body).toEqual(created.body);
  expect((await call('DELETE', USERS + id)).status).toBe(204);
});

describe('an email is 422', () => {
  test.each<unknown[]>([
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
    ...[
      ...['0000', '0001', '001B', '007F', '0085', '009F'],
      ...['00A0', '1680', '2003', '2028', '2029', '202F', '205F', '3000', 'FEFF'],
    ].map((code) => [`with U+${code}`, `ada${String.fromCharCode(Number.parseInt(code, 16))}@example.com`]),
    ['with a lone high surrogate', 'ada\ud83c@example.com'],
    ['with a lone low surrogate', 'ada\udf0d@example.com'],
    ['with surrogates the wrong way round', 'ada\udf0d\ud83c@example.com'],
    ['of 256 characters', `${'x'.repeat(254)}@y`],
    ['of 256 characters beyond the BMP', `${'🌍'.repeat(254)}@🌍`],
    ['of 60,000 characters', `${'x'.repeat(60_000)}@y`],
    ['if it is a number', 42],
    ['if it is a boolean', true],
    ['if it is an array', ['ada@example.com']],
    ['if it is an object', { address: 'ada@example.com' }],
  ])('%s', async (_case, email) => {
    for (const [method, to] of [
      ['POST', USERS],
      ['PATCH', path],
    ] as const) {
      const response = await call(method, to, { email });
      expect(response).toEqual(refusal('validation_error', to, { errors: 'any' }));
      const { errors } = response.body as { errors: readonly Record<string, string>[] };
      expect(new Set(errors.map(({ pointer }) => pointer))).toEqual(new Set(['#/email']));
    }
  });

  test('if it is absent or null on create', async () => {
    for (const body of [{}, { email: null }, { Email: freshAddress() }])
      expect(await create(body)).toEqual(refusal('validation_error', USERS, { errors: ['#/email'] }));
  });
});

/** Each pair is equal but for the case of A to Z. */
const SAME = [
  ['Ada@Example.com', 'aDA@eXAMPLE.COM'],
  ['INFO@I.example', 'info@i.EXAMPLE'],
  ['Zoë@Ünïcode.example', 'zOë@ÜNïCODE.EXAMPLE'],
  ['AZ[\\]^_`{|}~@x.example', 'az[\\]^_`{|}~@X.example'],
] as const;

/** Each pair differs in another character, whatever a locale or Unicode says of its case or form. */
const DIFFERENT = [
  ['zoë@case.example', 'zoË@case.example'],
  ['юлия@case.example', 'Юлия@case.example'],
  ['οδυσσευς@case.example', 'οδυσσευσ@case.example'],
  ['straße@case.example', 'straẞe@case.example'],
  ['strasse@case.example', 'straße@strasse.example'],
  ['𐐨@case.example', '𐐀@case.example'],
  ['info@dotless.example', 'ınfo@dotless.example'],
  ['INFO@dotted.example', 'İNFO@dotted.example'],
  ['s@long.example', 'ſ@long.example'],
  ['k@kelvin.example', '\u212a@kelvin.example'],
  ['å@angstrom.example', '\u212b@angstrom.example'],
  ['ａ@width.example', 'Ａ@width.example'],
  ['a@width.example', 'ａ@ａ.example'],
  ['adá@mark.example', 'ada\u0301@mark.example'],
  ['münchen@münchen.example', 'münchen@xn--mnchen-3ya.example'],
  ['a\u200bb@joiner.example', 'ab@joiner.example'],
  ['a.b@example.net', 'ab@example.net'],
  ['a+b@example.net', 'a@example.net'],
  ['a_b@example.net', 'a-b@example.net'],
  ['a@[.example', 'a@{.example'],
  ['a%@example.net', 'a%%@example.net'],
] as const;

const LOCALES = {
  'the default': '',
  'C of libc': "LOCALE_PROVIDER libc LOCALE 'C'",
  Turkish: "LOCALE_PROVIDER icu ICU_LOCALE 'tr' LC_COLLATE 'C' LC_CTYPE 'C'",
  Lithuanian: "LOCALE_PROVIDER icu ICU_LOCALE 'lt' LC_COLLATE 'C' LC_CTYPE 'C'",
};

const here = Object.entries(LOCALES).slice(0, inject('postgresVersion') === 14 ? 1 : undefined);

describe.each(here)('in a database of the locale %s', (_name, locale) => {
  const { call } = serviceUnderTest(undefined, { locale });
  const create = (body: unknown) => call('POST', USERS, body);
  const find = (email: string) => call('GET', `${USERS}?email=${encodeURIComponent(email)}`);
  const findActive = (email: string) =>
    call('GET', `${USERS}?is_active=true&email=${encodeURIComponent(email)}`);

  test.each(SAME)('%s and %s are one email', async (first, second) => {
    const created = await create({ email: first });
    const { headers } = await create({ email: freshAddress() });
    const other = headers.location as string;

    expect([created.status, (created.body as UserBody).email]).toEqual([201, first]);
    expect(await create({ email: second })).toEqual(refusal('conflict_error', USERS));
    expect(await call('PATCH', other, { email: second })).toEqual(refusal('conflict_error', other));
    expect(await call('POST', BATCH, { items: [{ email: second }] })).toEqual(
      refusal('conflict_error', BATCH, { errors: ['#/items/0/email'] }),
    );
    expect(await find(second)).toEqual(success(200, [created.body]));
    expect(await findActive(second)).toEqual(success(200, [created.body]));
    const items = [{ email: `x${first}` }, { email: `x${second}` }];
    expect(await call('POST', BATCH, { items })).toEqual(
      refusal('validation_error', BATCH, { errors: ['#/items/1/email'] }),
    );
    const { body } = await call('POST', BATCH, { items, mode: 'partial' });
    expect((body as { status: number }[]).map(({ status }) => status)).toEqual([201, 409]);
  });

  test.each(DIFFERENT)('%s and %s are two', async (first, second) => {
    const created = [await create({ email: first }), await create({ email: second })];
    const batch = await call('POST', BATCH, { items: [{ email: `x${first}` }, { email: `x${second}` }] });

    expect([...created, batch].map(({ status }) => status)).toEqual([201, 201, 201]);
    for (const { body } of created) {
      const { id, email } = body as UserBody;
      expect(await find(email)).toEqual(success(200, [body]));
      expect(await findActive(email)).toEqual(success(200, [body]));
      expect((await call('PATCH', USERS + id, { email })).status).toBe(200);
    }
  });
});

describe('the owner of an email', () => {
  test('can change its case', async () => {
    const { id } = await createUser({ email: 'case@example.com' });
    const email = 'Case@Example.com';

    expect((await call('PATCH', USERS + id, { email })).body).toMatchObject({ email });
  });

  test('who changed it or was deleted leaves it to another user', async () => {
    const email = freshAddress();
    const { id } = await createUser({ email });
    await call('PATCH', USERS + id, { email: freshAddress() });
    const second = await create({ email });
    await call('DELETE', USERS + (second.body as UserBody).id);

    expect([second.status, (await create({ email })).status]).toEqual([201, 201]);
  });
});
