import { beforeAll, describe, expect, test } from 'vitest';
import { freshAddress, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

let path: string;

const { call, createUser } = serviceUnderTest();

beforeAll(async () => {
  path = USERS + (await createUser()).id;
});

describe('a full_name is stored and returned as given', () => {
  test.each([
    ['an empty text', ''],
    ['a space', ' '],
    ['spaces around it', '  Ada  '],
    ['lines', 'Ada\r\nLovelace\n'],
    ['a tab', 'Ada\tLovelace'],
    ['control characters', '\u0001\u001b[31m\u007f\u0085\u009f'],
    ['no-break and zero-width characters', '\u00a0\u200b\u200d\ufeff'],
    ['right-to-left marks', '\u202eecalevoL adA\u202c'],
    ['noncharacters', '\uffff\ufffe\u{1ffff}\u{10ffff}'],
    ['the replacement character', '\ufffd'],
    ['combining marks', 'Z͑ͫ̓ͪ̂ͫ̽a̴̵̞̞ͥḻ̘g̶ͅo'],
    ['letters composed and decomposed', 'Zoë Zoe\u0308'],
    ['all scripts', 'Юлия 用户 محمد नमस्ते ไทย 👩‍👩‍👧‍👦 𝔄𝔡𝔞'],
    ['quotation marks', `"'\`´“”`],
    ['backslashes', '\\ \\\\ \\u0000 \\x00'],
    ['SQL', "Robert'); DROP TABLE users;--"],
    ['HTML', '<script>alert("x")</script>&amp;'],
    ['an expression', '$' + '{7*7} {{7*7}} #{7*7} %s %n'],
    ['words that are values in JavaScript', 'null undefined NaN true __proto__'],
    ['255 characters', 'x'.repeat(255)],
    ['255 characters beyond the BMP', '🌍'.repeat(255)],
  ])('%s', async (_case, full_name) => {
    const created = await call('POST', USERS, { email: freshAddress(), full_name });
    const changed = await call('PATCH', path, { full_name });
    const read = await call('GET', USERS + (created.body as UserBody).id);

    const names = [created, changed, read].map(({ body }) => (body as UserBody).full_name);
    expect(names).toEqual([full_name, full_name, full_name]);
  });
});

describe('a full_name is 422', () => {
  test.each([
    ['of 256 characters', 'x'.repeat(256)],
    ['of 256 characters beyond the BMP', '🌍'.repeat(256)],
    ['with U+0000', 'Ada\0Lovelace'],
    ['of U+0000 only', '\0'],
    ['with a lone high surrogate', 'Ada \ud83c'],
    ['with a lone low surrogate', '\udf0d Ada'],
    ['with surrogates the wrong way round', '\udf0d\ud83c'],
    ['that is a number', 42],
    ['that is a boolean', false],
    ['that is an array', ['Ada']],
    ['that is an object', { first: 'Ada' }],
  ])('%s', async (_case, full_name) => {
    expect(await call('POST', USERS, { email: freshAddress(), full_name })).toEqual(
      refusal('validation_error', USERS, { errors: ['#/full_name'] }),
    );
    expect(await call('PATCH', path, { full_name })).toEqual(
      refusal('validation_error', path, { errors: ['#/full_name'] }),
    );
  });
});
