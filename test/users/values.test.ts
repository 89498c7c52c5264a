import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const { call } = serviceUnderTest();

/** Sends a text as it is, because a literal cannot have repeated members. */
const post = (body: string) =>
  call('POST', USERS, undefined, { body, headers: { 'content-type': 'application/json' } });

describe('unknown members are ignored', () => {
  test.each([
    '"is_active": false',
    '"is_active": "whatever"',
    '"id": "11111111-1111-1111-1111-111111111111"',
    '"created_at": "1970-01-01T00:00:00.000Z", "updated_at": null',
    '"version": 7',
    '"password": "secret"',
    '"__proto__": {"is_active": false, "full_name": "Eve"}',
    '"constructor": {"prototype": {"full_name": "Eve"}}',
    '"prototype": {}, "toString": 1, "hasOwnProperty": 1',
    '"": 1',
    '"Full_Name": "Eve", "fullName": "Eve"',
    '"deep": {"a": [{"b": [null, 1e400, -0]}]}',
    '"\\u0000": "\\u0000", "\\ud800": "\\ud800"',
  ])('on create: %s', async (members) => {
    const email = freshAddress();

    const response = await post(`{"email": "${email}", ${members}}`);
    const { id, created_at } = response.body as UserBody;

    const expected = user({ email, updated_at: created_at });
    expect(response).toEqual(success(201, expected, { location: USERS + id, etag: '"1"' }));
    expect(id).not.toMatch(/^1{8}/);
    expect({}).not.toHaveProperty('full_name');
  });

  test('on update', async () => {
    const { body } = await call('POST', USERS, { email: freshAddress() });
    const given = body as UserBody;
    const unknown = { id: USERS, created_at: null, updated_at: 'now', version: 9, role: 'admin' };

    const response = await call('PATCH', USERS + given.id, { ...unknown, full_name: 'Ada' });

    const updated_at = expect.not.stringMatching(given.updated_at);
    expect(response).toEqual(success(200, { ...given, full_name: 'Ada', updated_at }, { etag: '"2"' }));
  });
});

test('the last value of a repeated member counts', async () => {
  const email = freshAddress();

  const response = await post(`{"email": "none", "email": "${email}"}`);

  expect(response).toMatchObject({ status: 201, body: { email } });
});

test('422 names all faults of a body', async () => {
  const { body } = await call('POST', USERS, { email: freshAddress() });
  const path = USERS + (body as UserBody).id;

  expect(await call('POST', USERS, { email: 1, full_name: 2 })).toEqual(
    refusal('validation_error', USERS, { errors: ['#/email', '#/full_name'] }),
  );
  expect(await call('PATCH', path, { email: 1, full_name: 2, is_active: 3 })).toEqual(
    refusal('validation_error', path, { errors: ['#/email', '#/full_name', '#/is_active'] }),
  );
});

describe('any text is returned identical, or is 422', () => {
  const codeUnit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
  const hostile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300, size: 'max' }),
    fc.string({ unit: 'grapheme', maxLength: 100 }),
    fc.string({ unit: codeUnit, maxLength: 20 }),
    fc.string({
      unit: fc.constantFrom('\0', ' ', '@', "'", '"', '\\', '\n', '🌍', 'é', '\ud800'),
      maxLength: 12,
    }),
  );
  const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0');
  const lengthOf = (text: string) => [...text].length;

  test('as full_name', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(hostile, async (full_name) => {
        const response = await call('POST', USERS, { email: freshAddress(), full_name });
        if (!isStorable(full_name) || lengthOf(full_name) > 255) {
          expect(response).toEqual(refusal('validation_error', USERS, { errors: 'any' }));
          return;
        }
        expect(response.status).toBe(201);
        const { id } = response.body as UserBody;
        expect((await call('GET', USERS + id)).body).toMatchObject({ full_name });
      }),
      { numRuns: 150 },
    );
  });

  test('as email', { timeout: 60_000 }, async () => {
    const part = fc.string({
      unit: fc.oneof(codeUnit, fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })),
      maxLength: 8,
    });
    const address = fc.oneof(
      hostile,
      fc.tuple(part, part).map((parts) => parts.join('@')),
    );
    await fc.assert(
      fc.asyncProperty(address, async (email) => {
        const response = await call('POST', USERS, { email });
        expect([201, 409, 422]).toContain(response.status);
        if (response.status !== 201) return;
        const { id } = response.body as UserBody;
        expect((await call('GET', USERS + id)).body).toMatchObject({ email });
        expect(isStorable(email) && lengthOf(email) <= 255 && email.split('@').length === 2).toBe(true);
        expect(email).not.toMatch(/\s|\p{Cc}|^@|@$/u);
      }),
      { numRuns: 150 },
    );
  });
});
