import { beforeAll, describe, expect, test } from 'vitest';
import { refusal, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { storedUsers } from './stored-users.ts';

const UNKNOWN = '00000000-0000-0000-0000-000000000000';

const service = serviceUnderTest();

/** Users by the first letter of their emails, oldest first. */
let users: ReadonlyMap<string, UserBody>;

beforeAll(async () => {
  const stored = await storedUsers(
    service.database,
    `INSERT INTO users (id, email, is_active, created_at, updated_at) VALUES
       ('00000000-0000-0000-0000-00000000000a', 'a@example.com', true, '0001-01-01T00:00:00Z', now()),
       ('00000000-0000-0000-0000-00000000000b', 'b+news@example.com', false, '2026-01-02T03:04:05.677Z', now()),
       ('00000000-0000-0000-0000-00000000000d', 'd@example.com', true, '2026-01-02T03:04:05.678Z', now()),
       ('00000000-0000-0000-0000-00000000000c', 'C@Example.COM', false, '2026-01-02T03:04:05.678Z', now()),
       ('00000000-0000-0000-0000-00000000000e', 'eéß@example.com', true, '2026-01-02T03:04:05.679Z', now()),
       ('00000000-0000-0000-0000-00000000000f', 'f%25@example.com', false, '9999-12-31T23:59:59.999Z', now())`,
  );
  users = new Map(stored.map((user) => [user.email.charAt(0).toLowerCase(), user]));
});

const list = (query: string) => service.call('GET', `${USERS}?${query}`);

const only = (letters: string) =>
  success(
    200,
    [...letters].map((letter) => users.get(letter)),
  );

/** The id of the user whose email begins with a letter. */
const idOf = (letter: string) => users.get(letter)?.id ?? '';

describe('email finds the user with exactly this email, whatever the case of A to Z', () => {
  test.each([
    ['a@example.com', 'a'],
    ['c@example.com', 'c'],
    ['b%2Bnews@example.com', 'b'],
    ['e%C3%A9%C3%9F@example.com', 'e'],
    ['e%C3%89%C3%9F@example.com', ''],
    ['f%2525@example.com', 'f'],
    ['f%25@example.com', ''],
    ['_@example.com', ''],
    [`${'a'.repeat(243)}@example.com`, ''],
  ])('%s', async (email, found) => {
    expect(await list(`email=${email}`)).toEqual(only(found));
  });
});

describe('is_active finds active or inactive users', () => {
  test.each([
    ['is_active=true', 'ade'],
    ['is_active=false', 'bcf'],
  ])('%s', async (query, found) => {
    expect(await list(query)).toEqual(only(found));
  });
});

describe('ids finds the users with these ids', () => {
  test.each<readonly [string, (...ids: string[]) => string, string]>([
    ['several, in the order of the list', (a, b, c) => `${c},${a},${b}`, 'abc'],
    ['an unknown id, which is ignored', (a) => `${UNKNOWN},${a}`, 'a'],
    ['a repeated id, which appears once', (a, b) => `${a},${b},${a}`, 'ab'],
    ['in either case', (a, b) => `${a?.toUpperCase()},${b}`, 'ab'],
    ['100 of them', (a) => Array(100).fill(a).join(), 'a'],
  ])('%s', async (_case, idsOf, found) => {
    expect(await list(`ids=${idsOf(idOf('a'), idOf('b'), idOf('c'))}`)).toEqual(only(found));
  });
});

describe('created_after and created_before find users created between two times (exclusive)', () => {
  test.each([
    ['created_after=2026-01-02T03:04:05.678Z', 'ef'],
    ['created_after=2026-01-02T03:04:05.677999999Z', 'cdef'],
    ['created_after=2026-01-02T03:04:05.678000001Z', 'ef'],
    ['created_before=2026-01-02T03:04:05.678Z', 'ab'],
    ['created_before=2026-01-02T03:04:05.678000001Z', 'abcd'],
    ['created_before=2026-01-02T03:04:05.6780Z', 'ab'],
    ['created_before=2026-01-02T03:04:05.67Z', 'a'],
    ['created_after=2026-01-02T03:04:05.677Z&created_before=2026-01-02T03:04:05.679Z', 'cd'],
    ['created_after=2026-01-02t03:04:05.678z', 'ef'],
    ['created_after=2026-01-01T22:34:05.678-04:30', 'ef'],
    ['created_after=2026-01-03T03:03:05.678%2B23:59', 'ef'],
    ['created_after=2024-02-29T23:59:59Z', 'bcdef'],
    ['created_before=0001-01-01T00:00:00Z', ''],
    ['created_before=0000-12-31T23:30:00-01:00', 'a'],
    ['created_after=9999-12-31T23:59:59.998999999Z', 'f'],
    ['created_before=9999-12-31T23:59:59.999999999Z', 'abcdef'],
  ])('%s', async (query, found) => {
    expect(await list(query)).toEqual(only(found));
  });
});

describe('sort is oldest or newest first, and then by id in the same direction', () => {
  test.each([
    ['sort=created_at', 'abcdef'],
    ['sort=-created_at', 'fedcba'],
    ['sort=-created_at&is_active=true', 'eda'],
  ])('%s', async (query, found) => {
    expect(await list(query)).toEqual(only(found));
  });
});

describe('filters are combined by "and"', () => {
  test.each<readonly [string, string]>([
    ['email=c@example.com&is_active=false', 'c'],
    ['email=c@example.com&is_active=true', ''],
    ['ids=A,B,C&is_active=true', 'a'],
    ['ids=A,B,C,D&created_after=2026-01-01T00:00:00Z&is_active=false&sort=-created_at', 'cb'],
    ['is_active=false&created_after=2026-01-02T03:04:05.677Z&created_before=9999-01-01T00:00:00Z', 'c'],
    ['sort=-created_at&skip=4', 'ba'],
  ])('%s', async (query, found) => {
    const ids = query.replace(/[A-D](?=[,&])/g, (letter) => idOf(letter.toLowerCase()));
    expect(await list(ids)).toEqual(only(found));
  });
});

describe('422 names', () => {
  const TIMES = ['created_after', 'created_before'];

  test.each<readonly [name: string, value: string]>([
    ['email', ''],
    ['email', 'a'],
    ['email', 'a@b@c'],
    ['email', 'a%00@b'],
    ['email', 'a%C2%A0@b'],
    ['email', `${'a'.repeat(244)}@example.com`],
    ['is_active', ''],
    ['is_active', 'TRUE'],
    ['is_active', '1'],
    ['is_active', 'true,false'],
    ['ids', ''],
    ['ids', 'x'],
    ['ids', `${UNKNOWN},`],
    ['ids', `${UNKNOWN}, ${UNKNOWN}`],
    ['ids', UNKNOWN.replaceAll('-', '')],
    ['ids', Array(101).fill(UNKNOWN).join()],
    ['sort', ''],
    ['sort', '%2Bcreated_at'],
    ['sort', 'updated_at'],
    ...TIMES.flatMap((name) =>
      [
        ...['', 'now', 'infinity', '2026-01-02', '2026-01-02T03:04:05', '2026-01-02T03:04Z'],
        ...['2026-01-02%2003:04:05Z', '2026-01-02T03:04:05.1234567890Z', '2016-12-31T23:59:60Z'],
        ...['2026-01-02T24:00:00Z', '2026-01-02T03:60:00Z', '1900-02-29T00:00:00Z', '2026-04-31T00:00:00Z'],
        ...['2026-13-01T00:00:00Z', '2026-01-00T00:00:00Z', '10000-01-01T00:00:00Z', '1767323045'],
        ...['2026-00-01T00:00:00Z', '2026-01-32T00:00:00Z', '2026-01-02T03:04:05.Z'],
        ...['2026-01-02T03:04:05%2B0100', '2026-01-02T03:04:05%2B24:00', '2026-01-02T03:04:05%2B01:60'],
        ...['2026-01-02T03:04:05Z%0A', '0000-12-31T23:59:59Z', '9999-12-31T23:59:00-00:01'],
      ].map((value) => [name, value] as const),
    ),
  ])('%s for %s', async (name, value) => {
    expect(await list(`${name}=${value}`)).toEqual(refusal('validation_error', USERS, { errors: [name] }));
  });

  test('%2B as the form of + if the email has a space', async () => {
    const { body } = await list(
      'email=b+news@example.com&created_after=2026-01-02T03:04:05+01:00&created_before=2026-01-02T03:04:05+01:00',
    );

    const hinted = (parameter: string) => ({
      parameter,
      detail: expect.stringContaining('write + as %2B'),
    });
    expect(body).toMatchObject({ errors: ['email', ...TIMES].map(hinted) });
  });

  test.each([
    ['email', '%FF@example.com'],
    ['email', 'a%C3@example.com'],
    ['email', '%ED%A0%80@example.com'],
    ['created_after', '%FF'],
    ['limit', '1%FF'],
  ])('%s for bytes that are not UTF-8: %s', async (name, value) => {
    expect((await list(`${name}=${value}`)).body).toMatchObject({
      status: 422,
      errors: [{ parameter: name, detail: 'must be UTF-8' }],
    });
  });

  test('no unknown parameter that is not UTF-8', async () => {
    expect(await list('%FF=1&x=%FF&is_active=true')).toEqual(only('ade'));
  });

  test.each(['email', 'is_active', 'ids', 'created_after', 'created_before', 'sort', 'cursor'])(
    '%s if it is repeated',
    async (name) => {
      expect(await list(`${name}=x&${name}=x`)).toEqual(
        refusal('validation_error', USERS, { errors: [name] }),
      );
    },
  );

  test('all faults', async () => {
    const query = 'limit=x&skip=x&cursor=x&sort=x&created_before=x&created_after=x&ids=x&is_active=x&email=x';
    const { body } = await list(query);

    expect(body).toMatchObject({
      status: 422,
      errors: ORDER.map((parameter) => ({ parameter, detail: expect.stringMatching(/^must /) })),
    });
  });
});

const ORDER = [
  ...['email', 'is_active', 'ids', 'created_after', 'created_before', 'sort', 'cursor', 'skip', 'limit'],
];
