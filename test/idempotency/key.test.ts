import { describe, expect, test } from 'vitest';
import { lastResponse, requestText } from '../stage/connection.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { BATCH, freshAddress, invalid, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const post = postingUnderKeys(service.call);

describe('a valid key is', () => {
  test.each([
    ['1 character', 'k'],
    ['255 characters', 'k'.repeat(255)],
    ['255 characters in quotes', `"${'q'.repeat(255)}"`],
    ['every visible character but the comma', 'a!"#$%&\'()*+-./0123456789:;<=>?@A[\\]^_`{|}~'],
    ['a comma, in quotes', '"one,two"'],
    ['a quote that does not begin it', 'it"s'],
  ])('%s', async (_case, key) => {
    const email = freshAddress();

    expect((await post(USERS, key, { email })).headers['idempotency-replayed']).toBe(undefined);
    expect((await post(USERS, key, { email })).headers['idempotency-replayed']).toBe('true');
  });

  test.each([
    ['in quotes and without', 'same-1', '"same-1"'],
    ['with a quote, bare or escaped', 'sa"me', '"sa\\"me"'],
    ['with a backslash, bare or escaped', 'sa\\me', '"sa\\\\me"'],
    ['with spaces and tabs around it', 'same-2', ' \t same-2\t '],
  ])('the same key %s', async (_case, one, other) => {
    const email = freshAddress();
    await post(USERS, one, { email });

    expect((await post(USERS, other, { email })).headers['idempotency-replayed']).toBe('true');
  });

  test('another key in another case', async () => {
    await post(USERS, 'Case', { email: freshAddress() });

    expect((await post(USERS, 'case', { email: freshAddress() })).status).toBe(201);
  });
});

describe('422 names all faults, and an invalid key is', () => {
  test.each([
    ['empty quotes', '""'],
    ['256 characters', 'k'.repeat(256)],
    ['256 characters in quotes', `"${'k'.repeat(256)}"`],
    ['a space', 'a b'],
    ['a space in quotes', '"a b"'],
    ['a comma', 'a,b'],
    ['two strings', '"a", "b"'],
    ['a string with text after it', '"a"b'],
    ['a parameter of a string', '"a";x=1'],
    ['a string with a lone backslash', '"a\\b"'],
    ['letters beyond ASCII', 'caf\u00e9'],
    ['letters beyond ASCII in quotes', '"caf\u00e9"'],
  ])('%s', async (_case, key) => {
    const items = [{ email: freshAddress() }];

    expect(await post(USERS, key, { email: 'none' })).toEqual(invalid(USERS, 'Idempotency-Key', '#/email'));
    expect(await post(BATCH, key, { items })).toEqual(invalid(BATCH, 'Idempotency-Key'));
  });

  test('repeated in two header lines', async () => {
    const body = JSON.stringify({ email: freshAddress() });
    const key = freshKey();
    const { authorization } = service;

    for (const second of [key, `"${key}"`]) {
      const keys = { 'Idempotency-Key': key, 'idempotency-key': second };
      const request = requestText(`POST ${USERS}`, { authorization, ...keys, Connection: 'close' }, body);
      expect(await lastResponse(service.url, request)).toEqual(invalid(USERS, 'Idempotency-Key'));
    }
  });
});
