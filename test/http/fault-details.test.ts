import { describe, expect, test } from 'vitest';
import { BATCH, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = `${USERS}11111111-1111-1111-1111-111111111111`;
const ADDRESS =
  'must have exactly one @ with at least one character on each side, and no white space or control characters';

const service = serviceUnderTest();

/** The faults of a response: place and detail. */
async function faultsOf(method: string, path: string, content?: string | Uint8Array<ArrayBuffer>) {
  const sent =
    content === undefined ? {} : { body: content, headers: { 'content-type': 'application/json' } };
  const { status, body } = await service.call(method, path, undefined, sent);
  expect(status).toBe(422);
  const { errors } = body as { errors: readonly { pointer?: string; parameter?: string; detail: string }[] };
  return errors.map(({ pointer, parameter, detail }) => [pointer ?? parameter, detail]);
}

describe('the detail of a fault states the rule for the value', () => {
  const long = 'x'.repeat(256);

  test.each<readonly [string, readonly (readonly string[])[]]>([
    ['{}', [['#/email', 'must be present']]],
    ['{"email": null}', [['#/email', 'must be a string']]],
    [
      '{"email": ""}',
      [
        ['#/email', 'must have 1 to 255 characters'],
        ['#/email', ADDRESS],
      ],
    ],
    ['{"email": "nobody"}', [['#/email', ADDRESS]]],
    [`{"email": "${long}@example.com"}`, [['#/email', 'must have 1 to 255 characters']]],
    ['{"email": "a@\\ud800"}', [['#/email', 'must have no U+0000 and no lone surrogate']]],
    [`{"email": "a@b.c", "full_name": "${long}"}`, [['#/full_name', 'must have 0 to 255 characters']]],
    ['null', [['#', 'must be an object']]],
    ['[]', [['#', 'must be an object']]],
    ['{', [['#', 'must be valid JSON']]],
    ['', [['#', 'must not be empty']]],
  ])('of a body to create: %s', async (content, faults) => {
    expect(await faultsOf('POST', USERS, content)).toEqual(faults);
  });

  test('of the items of a batch', async () => {
    expect(await faultsOf('POST', BATCH, '{"items": {}}')).toEqual([['#/items', 'must be an array']]);
  });

  test('of a body that is not UTF-8', async () => {
    const bytes = new Uint8Array(Buffer.from('7b22656d61696c223a22ff227d', 'hex'));

    expect(await faultsOf('POST', USERS, bytes)).toEqual([['#', 'must be UTF-8']]);
  });

  test.each<readonly [string, readonly (readonly string[])[]]>([
    ['{"full_name": false}', [['#/full_name', 'must be a string']]],
    ['{"is_active": "true"}', [['#/is_active', 'must be true or false']]],
    ['[{}]', [['#', 'must be an object']]],
  ])('of a body to update: %s', async (content, faults) => {
    expect(await faultsOf('PATCH', UNKNOWN, content)).toEqual(faults);
  });

  test.each<readonly [string, readonly (readonly string[])[]]>([
    ['?limit=0', [['limit', 'must be an integer from 1 to 1000, in decimal digits']]],
    ['?skip=-1', [['skip', 'must be an integer from 0 to 2147483647, in decimal digits']]],
    ['?skip=1&skip=1', [['skip', 'must not be repeated']]],
  ])('of a query value: %s', async (query, faults) => {
    expect(await faultsOf('GET', USERS + query)).toEqual(faults);
  });

  const NO_BRACKETS = 'must not have brackets behind its name; the items of a list are separated by commas';

  test.each<readonly [string, string, ...names: string[]]>([
    [USERS, 'ids[]', 'ids'],
    [USERS, 'ids%5B%5D=a&ids[0]=b&ids%5b99999%5d=c&ids=d', 'ids'],
    [USERS, 'limit[]=5&unknown[]=1&email%5B1%5D=a&%65mail[]=b', 'email', 'limit'],
    [`${USERS}changes`, 'wait[]=1', 'wait'],
    [`${UNKNOWN}/changes`, 'cursor[0]=1', 'cursor'],
  ])('of a query name with brackets: %s?%s', async (path, query, ...names) => {
    expect(await faultsOf('GET', `${path}?${query}`)).toEqual(names.map((name) => [name, NO_BRACKETS]));
  });

  test.each(['GET', 'DELETE'])('of a path value: %s', async (method) => {
    expect(await faultsOf(method, `${USERS}42`)).toEqual([['user_id', 'must be a UUID']]);
  });
});
