import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectTo, lastAnswer, written } from '../stage/connection.ts';
import { freshAddress, readResponse, UUID_4 } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';
const VISIBLE = Array.from({ length: 0x7e - 0x20 }, (_, index) => String.fromCharCode(0x21 + index)).join('');

let service: Awaited<ReturnType<typeof startService>>;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.stop());

/** The request ID of the response to a request whose header has exactly these bytes. */
async function idFor(value: string, header = 'X-Request-ID', url = service.url): Promise<string | undefined> {
  const fields = [
    ['Host', 'localhost'],
    [header, value],
    ['Connection', 'close'],
  ] as const;
  const { headers } = await lastAnswer(url, written('GET /health', fields));
  return headers[header.toLowerCase()];
}

describe('the inbound value', () => {
  test.each(['1', 'call-7f3a', VISIBLE, 'x'.repeat(128), '7d4f0f6e-32dd-44a2-b7a1-0c9cdb2cd8a0'])(
    'is used if it is 1 to 128 characters of visible ASCII: %s',
    async (value) => {
      expect(await idFor(value)).toBe(value);
    },
  );

  test.each([
    ['is empty', ''],
    ['is longer than 128 characters', 'x'.repeat(129)],
    ['contains a space', 'a b'],
    ['contains a tab', 'a\tb'],
    ['contains a letter outside of ASCII', 'caf\xe9'],
    ['contains bytes of UTF-8', Buffer.from('🌍').toString('latin1')],
  ])('is replaced by a UUID version 4 if it %s', async (_case, value) => {
    expect(await idFor(value)).toMatch(UUID_4);
  });

  test.each([
    ['two', ['one', 'two']],
    ['two equal ones', ['one', 'one']],
    ['one and an empty one', ['one', '']],
    ['an empty one and one', ['', 'one']],
    ['three', ['one', 'two', 'three']],
  ])('is replaced by a UUID version 4 if it is repeated: %s', async (_case, values) => {
    const repeated = values.map(
      (value, index) => [index === 0 ? 'X-Request-ID' : 'x-request-id', value] as const,
    );
    const fields = [['Host', 'localhost'] as const, ...repeated, ['Connection', 'close'] as const];

    const lines = ['GET /health', `GET ${USERS}`, 'CONNECT localhost:80', 'G3T /health', 'GET /%zz'];
    for (const line of lines) {
      const { headers } = await lastAnswer(service.url, written(line, fields));
      expect(headers['x-request-id']).toMatch(UUID_4);
    }
  });

  test('is used if it contains a comma', async () => {
    expect(await idFor('one,two')).toBe('one,two');
  });

  test("is found in any case of the header's name", async () => {
    const fields = [
      ['Host', 'localhost'],
      ['x-ReQuEsT-iD', 'any-case'],
      ['Connection', 'close'],
    ] as const;

    const { headers } = await lastAnswer(service.url, written('GET /health', fields));
    expect(headers['x-request-id']).toBe('any-case');
  });
});

test('a request without one gets a UUID version 4', async () => {
  const responses = await Promise.all(Array.from({ length: 50 }, () => fetch(`${service.url}/health`)));

  const ids = responses.map(({ headers }) => headers.get('x-request-id'));
  for (const id of ids) expect(id).toMatch(UUID_4);
  expect(new Set(ids).size).toBe(50);
});

describe('the request ID is in every response:', () => {
  const id = 'one-of-all';
  const bearing = { headers: { 'x-request-id': id } };

  test.each([
    ['POST', USERS, { email: freshAddress() }, 201],
    ['GET', USERS, undefined, 200],
    ['HEAD', USERS, undefined, 200],
    ['POST', USERS, {}, 422],
    ['GET', `${USERS}42`, undefined, 422],
    ['GET', `${USERS}11111111-1111-1111-1111-111111111111`, undefined, 404],
    ['DELETE', `${USERS}11111111-1111-1111-1111-111111111111`, undefined, 404],
    ['GET', '/health', undefined, 200],
    ['GET', '/ready', undefined, 200],
    ['GET', '/nowhere', undefined, 404],
    ['GET', '/%zz', undefined, 400],
    ['PUT', USERS, undefined, 405],
    ['OPTIONS', USERS, undefined, 204],
  ])('%s %s', async (method, path, body, status) => {
    const response = await service.call(method, path, body, bearing);

    expect([response.status, response.headers.get('x-request-id')]).toEqual([status, id]);
  });

  test('DELETE of a user', async () => {
    const created = (await (await service.call('POST', USERS, { email: freshAddress() })).json()) as {
      id: string;
    };

    const response = await service.call('DELETE', USERS + created.id, undefined, bearing);
    expect([response.status, response.headers.get('x-request-id')]).toEqual([204, id]);
  });

  test('without a token', async () => {
    const response = await fetch(`${service.url}${USERS}`, bearing);

    expect([response.status, response.headers.get('x-request-id')]).toEqual([401, id]);
  });

  test('without a Host header', async () => {
    const { status, headers } = await lastAnswer(
      service.url,
      written('GET /health', [
        ['X-Request-ID', id],
        ['Connection', 'close'],
      ]),
    );

    expect([status, headers['x-request-id']]).toEqual([400, id]);
  });

  test.each([
    ['not HTTP', 'hello\r\n\r\n', 400],
    ['too large a head', `GET / HTTP/1.1\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ])('with a new one if the request could not be read: %s', async (_case, content, status) => {
    const answer = await lastAnswer(service.url, content);

    expect([answer.status, answer.headers['x-request-id']]).toEqual([status, expect.stringMatching(UUID_4)]);
  });
});

test('concurrent requests on one connection keep their own request IDs', async () => {
  const connection = await connectTo(service.url);
  const authorization = `Bearer ${await service.issuer.sign()}`;
  const ids = Array.from({ length: 20 }, (_, index) => `of-${index}`);
  for (const id of ids) {
    connection.send(
      written(`GET ${USERS}`, [
        ['Host', 'localhost'],
        ['Authorization', authorization],
        ['X-Request-ID', id],
      ]),
    );
  }

  const answered = [];
  for (const _ of ids) answered.push((await connection.answer()).headers['x-request-id']);
  connection.close();
  expect(answered).toEqual(ids);
});

describe('SVC_REQUEST_ID_HEADER', () => {
  test('names the header of requests and responses, also of parser refusals', async () => {
    const other = await startService({ SVC_REQUEST_ID_HEADER: 'Correlation-Id' });
    const ids = [await idFor('mine', 'Correlation-Id', other.url)];
    const response = await fetch(`${other.url}/health`, { headers: { 'X-Request-ID': 'not-mine' } });
    const answers = [await readResponse(response), await lastAnswer(other.url, 'hello\r\n\r\n')];
    await other.stop();

    expect(ids).toEqual(['mine']);
    for (const { headers } of answers) {
      expect(headers['correlation-id']).toMatch(UUID_4);
      expect(headers).not.toHaveProperty('x-request-id');
    }
  });
});
