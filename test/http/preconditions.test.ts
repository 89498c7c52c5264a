import { describe, expect, test } from 'vitest';
import { connectTo, lastResponse, requestText } from '../stage/connection.ts';
import { freshAddress, refusal, success, TIMESTAMP, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { createUser } = service;

const call = (method: string, path: string, ifMatch?: string, body?: unknown) =>
  callWith(method, path, ifMatch === undefined ? {} : { 'if-match': ifMatch }, body);

const callWith = (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
  service.call(method, path, body, { headers });

/** The response 304: a 200 without its content. */
const notModified = (etag: string) => {
  const { 'content-type': _, ...headers } = success(200, '', { etag }).headers;
  return { status: 304, headers, body: '' };
};

describe('If-Match is satisfied', () => {
  test.each(['"1"', '*', '  "1"  ', 'W/"1", "1"', '"a,b", "1"', ', "1",'])(
    'by %s, and the user is written',
    async (ifMatch) => {
      const given = await createUser();
      const path = USERS + given.id;

      const response = await call('PATCH', path, ifMatch, { full_name: 'Ada' });

      const updated = { ...given, full_name: 'Ada', updated_at: expect.stringMatching(TIMESTAMP) };
      expect(response).toEqual(success(200, updated, { etag: '"2"' }));
      expect(await call('DELETE', path, ifMatch.replaceAll('"1"', '"2"'))).toEqual(success(204, ''));
    },
  );

  test('by a list in several headers', async () => {
    const { id } = await createUser();
    const Authorization = `Bearer ${await service.issuer.sign()}`;
    const fields = { Authorization, 'If-Match': '"7"', 'if-match': '"1"', Connection: 'close' };

    expect(await lastResponse(service.url, requestText(`DELETE ${USERS}${id}`, fields))).toEqual(
      success(204, ''),
    );
  });

  test("by the ETag of the user's last response, with any method", async () => {
    const { id } = await createUser();
    const path = USERS + id;
    const first = (await call('GET', path)).headers.etag;
    const second = (await call('PATCH', path, first, {})).headers.etag;
    const third = (await call('PATCH', path, second, {})).headers.etag;

    expect([first, second, third]).toEqual(['"1"', '"2"', '"3"']);
    expect((await call('HEAD', path)).headers.etag).toBe(third);
    expect((await call('DELETE', path, third)).status).toBe(204);
  });
});

describe('If-Match is not satisfied', () => {
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
  ])('by %s: 412, and nothing is written', async (_case, ifMatch) => {
    const given = await createUser();
    const path = USERS + given.id;
    const expected = refusal('precondition_failed_error', path);

    expect(await call('PATCH', path, ifMatch, { full_name: 'Ada' })).toEqual(expected);
    expect(await call('DELETE', path, ifMatch)).toEqual(expected);
    expect(await call('GET', path, ifMatch)).toEqual(expected);
    expect(await call('GET', path)).toEqual(success(200, given, { etag: '"1"' }));
  });
});

describe('If-None-Match', () => {
  test.each(['"1"', 'W/"1"', '*', ' * ', '"7", W/"1"', '"a,b","1"', ',"1",'])(
    'that matches (%s): a read is 304 without content, a write 412',
    async (ifNoneMatch) => {
      const given = await createUser();
      const path = USERS + given.id;
      const headers = { 'if-none-match': ifNoneMatch };

      expect(await callWith('GET', path, headers)).toEqual(notModified('"1"'));
      expect(await callWith('HEAD', path, headers)).toEqual(notModified('"1"'));
      expect(await callWith('PATCH', path, headers, { full_name: 'Ada' })).toEqual(
        refusal('precondition_failed_error', path),
      );
      expect(await callWith('DELETE', path, headers)).toEqual(refusal('precondition_failed_error', path));
      expect(await call('GET', path)).toEqual(success(200, given, { etag: '"1"' }));
    },
  );

  test.each(['"9"', '', '1', 'W/1', 'x"1"', '"1', '"*"', '"01"', '*, "9"'])(
    'that does not match (%s) has no effect',
    async (ifNoneMatch) => {
      const given = await createUser();
      const path = USERS + given.id;
      const headers = { 'if-none-match': ifNoneMatch };

      expect(await callWith('GET', path, headers)).toEqual(success(200, given, { etag: '"1"' }));
      expect((await callWith('PATCH', path, headers, {})).status).toBe(200);
      expect(await callWith('DELETE', path, headers)).toEqual(success(204, ''));
    },
  );

  test('is checked after If-Match, and both must be satisfied', async () => {
    const { id } = await createUser();
    const path = USERS + id;

    expect((await callWith('GET', path, { 'if-match': '"2"', 'if-none-match': '"1"' })).status).toBe(412);
    expect((await callWith('GET', path, { 'if-match': '"1"', 'if-none-match': '"1"' })).status).toBe(304);
    expect((await callWith('PATCH', path, { 'if-match': '"1"', 'if-none-match': '"1"' }, {})).status).toBe(
      412,
    );
    expect((await callWith('PATCH', path, { 'if-match': '"1"', 'if-none-match': '"2"' }, {})).status).toBe(
      200,
    );
  });

  test('a 304 has no Content-Length, and the connection serves the next request', async () => {
    const { id } = await createUser();
    const connection = await connectTo(service.url);
    const fields = { Authorization: `Bearer ${await service.issuer.sign()}` };
    for (const method of ['GET', 'HEAD'])
      connection.send(requestText(`${method} ${USERS}${id}`, { ...fields, 'If-None-Match': '"1"' }));
    connection.send(requestText(`GET ${USERS}${id}`, { ...fields, Connection: 'close' }));

    expect(await connection.rest()).toMatch(
      /^HTTP\/1\.1 304 (?:(?!content-length).)*HTTP\/1\.1 304 (?:(?!content-length).)*HTTP\/1\.1 200 /is,
    );
  });
});

test('dates are ignored', async () => {
  const { id } = await createUser();
  const later = { 'if-modified-since': new Date(Date.now() + 86_400_000).toUTCString() };
  const earlier = { 'if-unmodified-since': new Date(0).toUTCString() };

  expect((await callWith('GET', USERS + id, later)).status).toBe(200);
  expect((await callWith('PATCH', USERS + id, earlier, {})).status).toBe(200);
});

test('the list and a create ignore both', async () => {
  const headers = { 'if-match': '"9"', 'if-none-match': '*' };

  expect((await callWith('GET', USERS, headers)).status).toBe(200);
  expect((await callWith('POST', USERS, headers, { email: freshAddress() })).status).toBe(201);
});

test('of 20 writers with one ETag exactly one succeeds', async () => {
  const { id } = await createUser();
  const writers = Array.from({ length: 20 }, (_, index) => `writer ${index}`);

  const responses = await Promise.all(
    writers.map((full_name) => call('PATCH', USERS + id, '"1"', { full_name })),
  );

  const winners = responses.filter(({ status }) => status === 200);
  expect(winners).toHaveLength(1);
  expect(responses.filter(({ status }) => status === 412)).toHaveLength(19);
  expect(await call('GET', USERS + id)).toMatchObject({ body: winners[0]?.body, headers: { etag: '"2"' } });
});
