import { describe, expect, test } from 'vitest';
import { connectAndSend, lastResponse, written } from '../stage/connection.ts';
import { probe, refusal } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const HOST = ['Host', 'localhost'] as const;
const CALLER = ['X-Request-ID', 'of-the-caller'] as const;
const BROKEN = ['A', 'b\0c'] as const;

const service = serviceUnderTest();

const send = (content: string | Buffer) => lastResponse(service.url, content);

const invalidHttp = (headers: Record<string, string> = {}) => refusal('bad_request_error', '/', { headers });

describe('a method that the parser does not know', () => {
  test.each(['FOO', 'get', 'GETX', "!#$%&'*+-.^_`|~1aZ", '__proto__'])('is 400: %s', async (method) => {
    expect(await send(written(`${method} /health?token=secret`, [HOST, CALLER]))).toEqual(invalidHttp());
  });

  test.each([
    ['no token', 'F(O /health HTTP/1.1'],
    ['without a target', 'FOO HTTP/1.1'],
    ['before a target longer than a head may be', `FOO /${'x'.repeat(17_000)} HTTP/1.1`],
  ])('is not HTTP if it is %s', async (_case, line) => {
    expect(await send(Buffer.from(`${line}\r\nHost: a\r\n\r\n`, 'latin1'))).toEqual(invalidHttp());
  });

  test('is not HTTP after another request, in the same packet or a later one', async () => {
    for (const apart of [false, true]) {
      const [first, second] = [written('GET /health', [HOST]), written('FOO /health', [HOST, CALLER])];
      const connection = await connectAndSend(service.url, apart ? first : Buffer.concat([first, second]));
      expect(await connection.answer()).toEqual(probe('healthy'));
      if (apart) connection.send(second);

      expect(await connection.answer()).toEqual(invalidHttp());
      expect(await connection.rest()).toBe('');
    }
  });
});

describe('a request that the parser refuses', () => {
  test.each([
    ['400', BROKEN, 'bad_request_error'],
    ['431', ['A', 'x'.repeat(20_000)], 'request_header_fields_too_large_error'],
  ] as const)('is %s under the path / and a new request ID', async (_status, field, code) => {
    for (const fields of [[HOST, CALLER, field] as const, [HOST, field, CALLER] as const])
      expect(await send(written('GET /nowhere/"?token=secret', fields))).toEqual(refusal(code, '/'));
  });

  test('does not depend on the beginning of a later packet', async () => {
    const connection = await connectAndSend(service.url, 'GET /health HTTP/1.1\r\nHost: a\r\nA: ');
    // By the response the service has read the first packet.
    await fetch(`${service.url}/health`);
    connection.send(written('GET /elsewhere', [CALLER, BROKEN]));

    expect(await connection.answer()).toEqual(invalidHttp());
    expect(await connection.rest()).toBe('');
  });
});

describe('CONNECT', () => {
  test.each(['example.com:443', '/health'])("is 400 under the caller's request ID: %s", async (target) => {
    expect(await send(written(`CONNECT ${target}`, [HOST, CALLER]))).toEqual(
      invalidHttp({ 'x-request-id': 'of-the-caller' }),
    );
  });

  test('has its response after that of the request before it', async () => {
    const connection = await connectAndSend(
      service.url,
      Buffer.concat([written('GET /ready', [HOST]), written('CONNECT example.com:443', [HOST, CALLER])]),
    );

    expect(await connection.answer()).toEqual(probe('ready'));
    expect(await connection.answer()).toEqual(invalidHttp({ 'x-request-id': 'of-the-caller' }));
    expect(await connection.rest()).toBe('');
  });

  // A reset without a listener is an uncaught exception, which vitest reports.
  test('from a client that resets the connection does not harm the service', async () => {
    const connection = await connectAndSend(service.url, written('CONNECT example.com:443', [HOST]));
    expect((await connection.answer()).status).toBe(400);
    connection.abort();

    expect((await fetch(`${service.url}/health`)).status).toBe(200);
  });
});
