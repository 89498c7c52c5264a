import { describe, expect, test } from 'vitest';
import { lastResponse, written } from '../stage/connection.ts';
import { USERS, UUID_4 } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const VISIBLE = Array.from({ length: 0x7e - 0x20 }, (_, index) => String.fromCharCode(0x21 + index)).join('');

const service = serviceUnderTest();

const HOST = ['Host', 'localhost'] as const;
const CLOSE = ['Connection', 'close'] as const;

/** The request ID of the response to a request whose header has exactly these bytes. */
async function idFor(value: string, name = 'X-Request-ID'): Promise<string | undefined> {
  const { headers } = await lastResponse(service.url, written('GET /health', [HOST, [name, value], CLOSE]));
  return headers['x-request-id'];
}

describe('the inbound value', () => {
  test.each(['1', 'call-7f3a', 'one,two', VISIBLE, 'x'.repeat(128), '7d4f0f6e-32dd-44a2-b7a1-0c9cdb2cd8a0'])(
    'is used if it is 1 to 128 characters of visible ASCII: %s',
    async (value) => {
      expect(await idFor(value)).toBe(value);
    },
  );

  test.each([
    ['is empty', ''],
    ['is longer than 128 characters', 'x'.repeat(129)],
    ['contains a space', 'a b'],
    ['contains a letter outside of ASCII', 'caf\xe9'],
    ['contains bytes of UTF-8', Buffer.from('🌍').toString('latin1')],
  ])('is replaced by a UUID version 4 if it %s', async (_case, value) => {
    expect(await idFor(value)).toMatch(UUID_4);
  });

  test.each([
    ['two equal ones', ['one', 'one']],
    ['an empty one and one', ['', 'one']],
  ])('is replaced by a UUID version 4 if it is repeated: %s', async (_case, values) => {
    const [first, second] = values as [string, string];
    const fields = [HOST, ['X-Request-ID', first], ['x-request-id', second], CLOSE] as const;
    const lines = ['GET /health', `GET ${USERS}`, 'CONNECT localhost:80', 'G3T /health', 'GET /%zz'];
    for (const line of lines) {
      const { headers } = await lastResponse(service.url, written(line, fields));
      expect(headers['x-request-id']).toMatch(UUID_4);
    }
  });

  test("is found in any case of the header's name", async () => {
    expect(await idFor('any-case', 'x-ReQuEsT-iD')).toBe('any-case');
  });
});

describe('SVC_REQUEST_ID_HEADER names the header of requests and responses', () => {
  const other = serviceUnderTest(() => ({ SVC_REQUEST_ID_HEADER: 'Correlation-Id' }));
  const mine = [
    ['Correlation-Id', 'mine'],
    ['X-Request-ID', 'not-mine'],
  ] as const;

  test.each([
    ['of a request that is served', written('GET /health', [HOST, ...mine, CLOSE]), 200, /^mine$/],
    ['of a parser refusal', written('GET /health', [HOST, ...mine, ['A', 'b\0c']]), 400, UUID_4],
    ['of CONNECT', written('CONNECT example.com:443', [HOST, ...mine]), 400, /^mine$/],
    ['without a request ID', written('GET /health', [HOST, mine[1], CLOSE]), 200, UUID_4],
    ['of bytes that are not HTTP', Buffer.from('hello\r\n\r\n'), 400, UUID_4],
  ])('%s', async (_case, content, status, id) => {
    const answer = await lastResponse(other.url, content);

    expect(answer.status).toBe(status);
    expect(answer.headers['correlation-id']).toMatch(id);
    expect(answer.headers).not.toHaveProperty('x-request-id');
  });
});
