import { describe, expect, test } from 'vitest';
import { connectTo, requestText } from '../stage/connection.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { BATCH, freshAddress, refusal, USERS } from '../stage/responses.ts';
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
    const errors = ['Idempotency-Key', '#/email'];

    expect(await post(USERS, key, { email: 'none' })).toEqual(refusal('validation_error', USERS, { errors }));
    expect(await post(BATCH, key, { items: [{ email: freshAddress() }] })).toEqual(
      refusal('validation_error', BATCH, { errors: ['Idempotency-Key'] }),
    );
  });

  test('repeated in two header lines', async () => {
    const body = JSON.stringify({ email: freshAddress() });
    const key = freshKey();
    const Authorization = `Bearer ${await service.issuer.sign()}`;
    const connection = await connectTo(service.url);

    for (const second of [key, `"${key}"`]) {
      const fields = { Authorization, 'Idempotency-Key': key, 'idempotency-key': second };
      connection.send(requestText(`POST ${USERS}`, fields, body));
      expect(await connection.answer()).toEqual(
        refusal('validation_error', USERS, { errors: ['Idempotency-Key'] }),
      );
    }
    connection.close();
  });
});
