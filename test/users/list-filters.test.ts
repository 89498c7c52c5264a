import { beforeAll, describe, expect, test } from 'vitest';
import { invalid, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { storedUsers } from './stored-users.ts';

const UNKNOWN = '00000000-0000-0000-0000-000000000000';

const service = serviceUnderTest();

/** Users by the first letter of their emails, oldest first. */
let users: ReadonlyMap<string, UserBody>;

beforeAll(async () => {
  const stored = await storedUsers(
    service,
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

/** Gets the list. `{a}` in a query is the id of the user with this letter. */
const list = (query: string) =>
  service.call('GET', `${USERS}?${query.replace(/\{(.)\}/g, (_, letter) => users.get(letter)?.id ?? '')}`);

const only = (letters: string) =>
  success(
    200,
    Array.from(letters, (letter) => users.get(letter)),
  );

/** Tests that each query finds the users with these letters. */
function testFound(sentence: string, found: Readonly<Record<string, string>>) {
  test.each(Object.entries(found))(`${sentence}: %s`, async (query, letters) => {
    expect(await list(query)).toEqual(only(letters));
  });
}

testFound('email finds the user with exactly this email, whatever the case of A to Z', {
  'email=a@example.com': 'a',
  'email=c@example.com': 'c',
  'email=b%2Bnews@example.com': 'b',
  'email=e%C3%A9%C3%9F@example.com': 'e',
  'email=e%C3%89%C3%9F@example.com': '',
  'email=f%2525@example.com': 'f',
  'email=f%25@example.com': '',
  'email=_@example.com': '',
  [`email=${'a'.repeat(243)}@example.com`]: '',
});

testFound('is_active finds active or inactive users', {
  'is_active=true': 'ade',
  'is_active=false': 'bcf',
});

testFound('ids finds up to 100 users with these ids in either case, each once, and ignores unknown ids', {
  'ids={c},{a},{b}': 'abc',
  [`ids=${UNKNOWN},{a}`]: 'a',
  'ids={a},{b},{a}': 'ab',
  'ids=00000000-0000-0000-0000-00000000000A,{b}': 'ab',
  [`ids=${Array(100).fill('{a}')}`]: 'a',
});

testFound('created_after and created_before find users created between two times (exclusive)', {
  'created_after=2026-01-02T03:04:05.678Z': 'ef',
  'created_after=2026-01-02T03:04:05.677999999Z': 'cdef',
  'created_after=2026-01-02T03:04:05.678000001Z': 'ef',
  'created_before=2026-01-02T03:04:05.678Z': 'ab',
  'created_before=2026-01-02T03:04:05.678000001Z': 'abcd',
  'created_before=2026-01-02T03:04:05.6780Z': 'ab',
  'created_before=2026-01-02T03:04:05.67Z': 'a',
  'created_after=2026-01-02T03:04:05.677Z&created_before=2026-01-02T03:04:05.679Z': 'cd',
  'created_after=2026-01-02t03:04:05.678z': 'ef',
  'created_after=2026-01-01T22:34:05.678-04:30': 'ef',
  'created_after=2026-01-03T03:03:05.678%2B23:59': 'ef',
  'created_after=2024-02-29T23:59:59Z': 'bcdef',
  'created_before=0001-01-01T00:00:00Z': '',
  'created_before=0000-12-31T23:30:00-01:00': 'a',
  'created_after=9999-12-31T23:59:59.998999999Z': 'f',
  'created_before=9999-12-31T23:59:59.999999999Z': 'abcdef',
});

testFound('sort is oldest or newest first, and then by id in the same direction', {
  'sort=created_at': 'abcdef',
  'sort=-created_at': 'fedcba',
  'sort=-created_at&is_active=true': 'eda',
});

testFound('filters are combined by "and"', {
  'email=c@example.com&is_active=false': 'c',
  'email=c@example.com&is_active=true': '',
  'ids={a},{b},{c}&is_active=true': 'a',
  'ids={a},{b},{c},{d}&created_after=2026-01-01T00:00:00Z&is_active=false&sort=-created_at': 'cb',
  'is_active=false&created_after=2026-01-02T03:04:05.677Z&created_before=9999-01-01T00:00:00Z': 'c',
  'sort=-created_at&skip=4': 'ba',
});

describe('422 names', () => {
  const times = [
    ...['', 'now', 'infinity', '2026-01-02', '2026-01-02T03:04:05', '2026-01-02T03:04Z'],
    ...['2026-01-02%2003:04:05Z', '2026-01-02T03:04:05.1234567890Z', '2016-12-31T23:59:60Z'],
    ...['2026-01-02T24:00:00Z', '2026-01-02T03:60:00Z', '1900-02-29T00:00:00Z', '2026-04-31T00:00:00Z'],
    ...['2026-13-01T00:00:00Z', '2026-01-00T00:00:00Z', '10000-01-01T00:00:00Z', '1767323045'],
    ...['2026-00-01T00:00:00Z', '2026-01-32T00:00:00Z', '2026-01-02T03:04:05.Z'],
    ...['2026-01-02T03:04:05%2B0100', '2026-01-02T03:04:05%2B24:00', '2026-01-02T03:04:05%2B01:60'],
    ...['2026-01-02T03:04:05Z%0A', '0000-12-31T23:59:59Z', '9999-12-31T23:59:00-00:01'],
  ];
  const hundredAndOne = Array(101).fill(UNKNOWN).join();
  const values = {
    email: ['', 'a', 'a@b@c', 'a%00@b', 'a%C2%A0@b', `${'a'.repeat(244)}@example.com`],
    external_id: ['', 'x'.repeat(256), '🌍'.repeat(256), '%00', 'a%09b', 'a%C2%85'],
    is_active: ['', 'TRUE', '1', 'true,false'],
    ids: ['', 'x', `${UNKNOWN},`, `${UNKNOWN}, ${UNKNOWN}`, UNKNOWN.replaceAll('-', ''), hundredAndOne],
    sort: ['', '%2Bcreated_at', 'updated_at'],
    created_after: times,
    created_before: times,
  };

  describe.each(Object.entries(values))('%s', (name, refused) => {
    test.each(refused)('for %s', async (value) => {
      expect(await list(`${name}=${value}`)).toEqual(invalid(USERS, name));
    });
  });

  test('%2B as the form of + if the email has a space', async () => {
    const { body } = await list(
      'email=b+news@example.com&created_after=2026-01-02T03:04:05+01:00&created_before=2026-01-02T03:04:05+01:00',
    );

    const hinted = (parameter: string) => ({
      parameter,
      detail: expect.stringContaining('write + as %2B'),
    });
    expect(body).toMatchObject({ errors: ['email', 'created_after', 'created_before'].map(hinted) });
  });

  test.each([
    ['email', '%FF@example.com'],
    ['email', 'a%C3@example.com'],
    ['email', '%ED%A0%80@example.com'],
    ['external_id', '%FF'],
    ['external_id', '%ED%A0%80'],
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

  const filters = ['email', 'is_active', 'ids', 'created_after', 'created_before', 'sort', 'cursor'];

  test.each([...filters, 'external_id'])('%s if it is repeated', async (name) => {
    expect(await list(`${name}=x&${name}=x`)).toEqual(invalid(USERS, name));
  });

  test('all faults', async () => {
    const query = 'limit=x&skip=x&cursor=x&sort=x&created_before=x&created_after=x&ids=x&is_active=x&email=x';
    const { body } = await list(query);

    expect(body).toMatchObject({
      status: 422,
      errors: [...filters, 'skip', 'limit'].map((parameter) => ({
        parameter,
        detail: expect.stringMatching(/^must /),
      })),
    });
  });
});
