import { describe, expect, test } from 'vitest';
import { BATCH, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = `${USERS}11111111-1111-1111-1111-111111111111`;
const ADDRESS =
  'must have exactly one @ with at least one character on each side, and no white space or control characters';

const service = serviceUnderTest();

/** The faults of a response: place and detail. */
async function faultsOf(line: string, content?: string | Uint8Array<ArrayBuffer>) {
  const [method = '', path = ''] = line.split(' ');
  const sent =
    content === undefined ? {} : { body: content, headers: { 'content-type': 'application/json' } };
  const { status, body } = await service.call(method, path, undefined, sent);
  expect(status).toBe(422);
  const { errors } = body as { errors: readonly { pointer?: string; parameter?: string; detail: string }[] };
  return errors.map(({ pointer, parameter, detail }) => [pointer ?? parameter, detail]);
}

type Fault = [place: string, detail: string];

describe('the detail of a fault states the rule for the value', () => {
  const long = 'x'.repeat(256);

  test.each<[line: string, content: string | undefined, ...faults: Fault[]]>([
    [`POST ${USERS}`, '{}', ['#/email', 'must be present']],
    [`POST ${USERS}`, '{"email": null}', ['#/email', 'must be a string']],
    [`POST ${USERS}`, '{"email": ""}', ['#/email', 'must have 1 to 255 characters'], ['#/email', ADDRESS]],
    [`POST ${USERS}`, '{"email": "nobody"}', ['#/email', ADDRESS]],
    [`POST ${USERS}`, `{"email": "${long}@example.com"}`, ['#/email', 'must have 1 to 255 characters']],
    [`POST ${USERS}`, '{"email": "a@\\ud800"}', ['#/email', 'must have no U+0000 and no lone surrogate']],
    [
      `POST ${USERS}`,
      `{"email": "a@b.c", "full_name": "${long}"}`,
      ['#/full_name', 'must have 0 to 255 characters'],
    ],
    [`POST ${USERS}`, 'null', ['#', 'must be an object']],
    [`POST ${USERS}`, '[]', ['#', 'must be an object']],
    [`POST ${USERS}`, '{', ['#', 'must be valid JSON']],
    [`POST ${USERS}`, '', ['#', 'must not be empty']],
    [`POST ${BATCH}`, '{"items": {}}', ['#/items', 'must be an array']],
    [`PATCH ${UNKNOWN}`, '{"full_name": false}', ['#/full_name', 'must be a string']],
    [`PATCH ${UNKNOWN}`, '{"is_active": "true"}', ['#/is_active', 'must be true or false']],
    [`PATCH ${UNKNOWN}`, '[{}]', ['#', 'must be an object']],
    [`GET ${USERS}?limit=0`, undefined, ['limit', 'must be an integer from 1 to 1000, in decimal digits']],
    [
      `GET ${USERS}?skip=-1`,
      undefined,
      ['skip', 'must be an integer from 0 to 2147483647, in decimal digits'],
    ],
    [`GET ${USERS}?skip=1&skip=1`, undefined, ['skip', 'must not be repeated']],
    [`GET ${USERS}42`, undefined, ['user_id', 'must be a UUID']],
    [`DELETE ${USERS}42`, undefined, ['user_id', 'must be a UUID']],
  ])('in the response to %s with the body %s', async (line, content, ...faults) => {
    expect(await faultsOf(line, content)).toEqual(faults);
  });

  test('of a body that is not UTF-8', async () => {
    const bytes = new Uint8Array(Buffer.from('7b22656d61696c223a22ff227d', 'hex'));

    expect(await faultsOf(`POST ${USERS}`, bytes)).toEqual([['#', 'must be UTF-8']]);
  });

  const NO_BRACKETS = 'must not have brackets behind its name; the items of a list are separated by commas';

  test.each<readonly [string, string, ...names: string[]]>([
    [USERS, 'ids[]', 'ids'],
    [USERS, 'ids%5B%5D=a&ids[0]=b&ids%5b99999%5d=c&ids=d', 'ids'],
    [USERS, 'limit[]=5&unknown[]=1&email%5B1%5D=a&%65mail[]=b', 'email', 'limit'],
    [`${USERS}changes`, 'wait[]=1', 'wait'],
    [`${UNKNOWN}/changes`, 'cursor[0]=1', 'cursor'],
  ])('of a query name with brackets: %s?%s', async (path, query, ...names) => {
    expect(await faultsOf(`GET ${path}?${query}`)).toEqual(names.map((name) => [name, NO_BRACKETS]));
  });
});
