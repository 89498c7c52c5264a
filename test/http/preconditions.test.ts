import { describe, expect, test } from 'vitest';
import { lastResponse, requestText } from '../stage/connection.ts';
import { freshAddress, refusal, success, TIMESTAMP, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const service = serviceUnderTest();
const { createUser } = service;

const call = (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) =>
  service.call(method, path, body, { headers });

/** A new user, and its path. */
async function createPath() {
  const given = await createUser();
  return { given, path: USERS + given.id };
}

/** The response 304: a 200 without its content. */
const notModified = (etag: string) => {
  const { 'content-type': _, ...headers } = success(200, '', { etag }).headers;
  return { status: 304, headers, body: '' };
};

describe('If-Match is satisfied', () => {
  test.each(['"1"', '*', '  "1"  ', 'W/"1", "1"', '"a,b", "1"', ', "1",'])(
    'by %s, and the user is written',
    async (ifMatch) => {
      const { given, path } = await createPath();

      const response = await call('PATCH', path, { 'if-match': ifMatch }, { full_name: 'Ada' });

      const updated = { ...given, full_name: 'Ada', updated_at: expect.stringMatching(TIMESTAMP) };
      expect(response).toEqual(success(200, updated, { etag: '"2"' }));
      expect(await call('DELETE', path, { 'if-match': ifMatch.replaceAll('"1"', '"2"') })).toEqual(
        success(204, ''),
      );
    },
  );

  test('by a list in several headers', async () => {
    const { path } = await createPath();
    const { authorization: Authorization } = service;
    const fields = { Authorization, 'If-Match': '"7"', 'if-match': '"1"', Connection: 'close' };

    expect(await lastResponse(service.url, requestText(`DELETE ${path}`, fields))).toEqual(success(204, ''));
  });

  test("by the ETag of the user's last response, with any method", async () => {
    const { path } = await createPath();
    const matching = (etag = '') => ({ 'if-match': etag });
    const first = (await call('GET', path)).headers.etag;
    const second = (await call('PATCH', path, matching(first), {})).headers.etag;
    const third = (await call('PATCH', path, matching(second), {})).headers.etag;

    expect([first, second, third]).toEqual(['"1"', '"2"', '"3"']);
    expect((await call('HEAD', path)).headers.etag).toBe(third);
    expect((await call('DELETE', path, matching(third))).status).toBe(204);
  });
});

test.each([
  ['another version', '"2"'],
  ['a weak tag', 'W/"1"'],
  ['only weak tags', 'W/"1", W/"2"'],
  ['a list without it', '"0", "2", "3"'],
  ['no version at all', '"abc"'],
  ['a version with something to it', '"1-gzip"'],
  ['a version with leading zeros', '"01"'],
  ['a version beyond all numbers', `"${'9'.repeat(100)}"`],
  ['an empty tag', '""'],
  ['no quotation marks', '1'],
  ['half a tag', '"1'],
  ['letters beyond ASCII', '"\u00e9"'],
  ['a text that contains a tag', 'x"1"'],
  ['a tag with something behind it', '"1"x'],
  ['an empty value', ''],
])('If-Match is not satisfied by %s: 412, and nothing is written', async (_case, ifMatch) => {
  const { given, path } = await createPath();
  const headers = { 'if-match': ifMatch };
  const expected = refusal('precondition_failed_error', path);

  expect(await call('PATCH', path, headers, { full_name: 'Ada' })).toEqual(expected);
  expect(await call('DELETE', path, headers)).toEqual(expected);
  expect(await call('GET', path, headers)).toEqual(expected);
  expect(await call('GET', path)).toEqual(success(200, given, { etag: '"1"' }));
});

describe('If-None-Match', () => {
  test.each(['"1"', 'W/"1"', '*', ' * ', '"7", W/"1"', '"a,b","1"', ',"1",'])(
    'that matches (%s): a read is 304 without content, a write 412',
    async (ifNoneMatch) => {
      const { given, path } = await createPath();
      const headers = { 'if-none-match': ifNoneMatch };
      const failed = refusal('precondition_failed_error', path);

      expect(await call('GET', path, headers)).toEqual(notModified('"1"'));
      expect(await call('HEAD', path, headers)).toEqual(notModified('"1"'));
      expect(await call('PATCH', path, headers, { full_name: 'Ada' })).toEqual(failed);
      expect(await call('DELETE', path, headers)).toEqual(failed);
      expect(await call('GET', path)).toEqual(success(200, given, { etag: '"1"' }));
    },
  );

  test.each(['"9"', '', '1', 'W/1', 'x"1"', '"1', '"*"', '"01"', '*, "9"'])(
    'that does not match (%s) has no effect',
    async (ifNoneMatch) => {
      const { given, path } = await createPath();
      const headers = { 'if-none-match': ifNoneMatch };

      expect(await call('GET', path, headers)).toEqual(success(200, given, { etag: '"1"' }));
      expect((await call('PATCH', path, headers, {})).status).toBe(200);
      expect(await call('DELETE', path, headers)).toEqual(success(204, ''));
    },
  );

  test('is checked after If-Match, and both must be satisfied', async () => {
    const { path } = await createPath();
    const statusOf = async (method: string, ifMatch: string, ifNoneMatch: string, body?: object) =>
      (await call(method, path, { 'if-match': ifMatch, 'if-none-match': ifNoneMatch }, body)).status;

    expect(await statusOf('GET', '"2"', '"1"')).toBe(412);
    expect(await statusOf('GET', '"1"', '"1"')).toBe(304);
    expect(await statusOf('PATCH', '"1"', '"1"', {})).toBe(412);
    expect(await statusOf('PATCH', '"1"', '"2"', {})).toBe(200);
  });
});

test('dates are ignored', async () => {
  const { path } = await createPath();
  const later = { 'if-modified-since': new Date(Date.now() + 86_400_000).toUTCString() };
  const earlier = { 'if-unmodified-since': new Date(0).toUTCString() };

  expect((await call('GET', path, later)).status).toBe(200);
  expect((await call('PATCH', path, earlier, {})).status).toBe(200);
});

test('the list and a create ignore both', async () => {
  const headers = { 'if-match': '"9"', 'if-none-match': '*' };

  expect((await call('GET', USERS, headers)).status).toBe(200);
  expect((await call('POST', USERS, headers, { email: freshAddress() })).status).toBe(201);
});

test('of 20 writers with one ETag exactly one succeeds', async () => {
  const { path } = await createPath();
  const responses = await times(20, (index) =>
    call('PATCH', path, { 'if-match': '"1"' }, { full_name: `writer ${index}` }),
  );

  const winners = responses.filter(({ status }) => status === 200);
  expect(winners).toHaveLength(1);
  expect(responses.filter(({ status }) => status === 412)).toHaveLength(19);
  expect(await call('GET', path)).toMatchObject({ body: winners[0]?.body, headers: { etag: '"2"' } });
});
