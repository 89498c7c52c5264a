import { describe, expect, test } from 'vitest';
import { connectTo, lastAnswer, written } from '../stage/connection.ts';
import { probe, refusal, TIMESTAMP, USERS, UUID_4 } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const HOST = ['Host', 'localhost'] as const;
const CALLER = ['X-Request-ID', 'of-the-caller'] as const;
const BROKEN = ['A', 'b\0c'] as const;

const service = serviceUnderTest();

const send = (content: string | Buffer) => lastAnswer(service.url, content);

const refuseInvalidHttp = (instance: string, headers: Record<string, string> = {}) =>
  refusal('bad_request_error', instance, { headers });

/** The only response of a connection, line by line, without the values that differ between requests. */
async function linesFor(content: Buffer): Promise<readonly string[]> {
  const connection = await connectTo(service.url);
  connection.send(content);
  const lines = (await connection.rest()).split('\r\n');
  return lines.filter((line) => !/^(?:Date|X-Request-ID): ./.test(line));
}

describe('a method that the parser does not know', () => {
  const collection = { allow: 'POST, GET, HEAD, OPTIONS', 'x-request-id': 'of-the-caller' };
  const resource = { ...collection, allow: 'GET, HEAD, PATCH, DELETE, OPTIONS' };
  const healthProbe = { ...collection, allow: 'GET, HEAD, OPTIONS' };

  test.each([
    ['FOO', '/health', healthProbe],
    ['BREW', `${USERS}?limit=1`, collection],
    ['get', `${USERS}42`, resource],
    ['GETX', '/api/v1/%75sers', collection],
    ['GE', USERS, collection],
    ['DESCRIBE', '/ready', healthProbe],
    ["!#$%&'*+-.^_`|~1aZ", '/health', healthProbe],
    ['constructor', '/health', healthProbe],
    ['__proto__', '/health', healthProbe],
    ['FOO', 'http://localhost/health', healthProbe],
  ])('is 405 on a known path: %s %s', async (method, target, headers) => {
    const path = target.replace(/\?.*|^http:..localhost/, '');

    expect(await send(written(`${method} ${target}`, [HOST, CALLER]))).toEqual(
      refusal('method_not_allowed_error', path, { headers }),
    );
  });

  test.each([
    ['/nowhere', 'not_found_error', '/nowhere'],
    ['/nowhere?token=secret', 'not_found_error', '/nowhere'],
    ['http://localhost', 'not_found_error', '/'],
    ['/a"b', 'not_found_error', '/a%22b'],
    ['/%zz', 'bad_request_error', '/%zz'],
  ] as const)('is refused as any other on another path: %s is %s', async (target, code, instance) => {
    expect(await send(written(`FOO ${target}`, [HOST, CALLER]))).toEqual(
      refusal(code, instance, { headers: { 'x-request-id': 'of-the-caller' } }),
    );
  });

  test('has the same response byte by byte as a method that the parser knows', async () => {
    const close = ['Connection', 'close'] as const;
    const unknown = await linesFor(written(`FOO ${USERS}`, [HOST, CALLER, close]));

    expect(unknown[0]).toBe('HTTP/1.1 405 Method Not Allowed');
    expect(unknown).toEqual(await linesFor(written(`PROPFIND ${USERS}`, [HOST, CALLER, close])));
  });

  test('is logged like any other request', async () => {
    const id = 'brewing';
    await send(written('BREW /health?token=secret', [HOST, ['X-Request-ID', id]]));

    const events = await service.events();
    expect(events.filter(({ request_id }) => request_id === id)).toEqual([
      {
        timestamp: expect.stringMatching(TIMESTAMP),
        level: 'warning',
        event: 'app_error',
        request_id: id,
        message: 'This resource supports only these methods: GET, HEAD, OPTIONS.',
        status_code: 405,
        path: '/health',
      },
    ]);
  });

  test('has its response before its body', async () => {
    const connection = await connectTo(service.url);
    connection.send(written('FOO /health', [HOST, ['Content-Length', '9']]));

    expect((await connection.answer()).status).toBe(405);
    connection.send('{}');
    expect(await connection.rest()).toBe('');
  });

  test('requires a Host header like any other, except in HTTP/1.0', async () => {
    expect(await send('FOO /health HTTP/1.1\r\n\r\n')).toEqual(refuseInvalidHttp('/health'));
    expect((await send('FOO /health HTTP/1.0\r\n\r\n')).status).toBe(405);
  });

  test.each([
    ['no token', 'F(O /health HTTP/1.1'],
    ['followed by another word', 'FOO BAR /health HTTP/1.1'],
    ['two spaces before its target', 'FOO  /health HTTP/1.1'],
    ['without a target', 'FOO HTTP/1.1'],
    ['before a target without a slash', 'FOO health HTTP/1.1'],
    ['before a target with a control character', 'FOO /hea\x01lth HTTP/1.1'],
    ['before a target with a byte above 7F', 'FOO /h\xe9 HTTP/1.1'],
    ['before a target longer than a head may be', `FOO /${'x'.repeat(17_000)} HTTP/1.1`],
    ['before another protocol', 'FOO /health RTSP/1.0'],
    ['before another version', 'FOO /health HTTP/2.0'],
    ['on a line that ends with a bare LF', 'FOO /health HTTP/1.1\nA: b'],
  ])('is not HTTP if it is %s', async (_case, line) => {
    expect(await send(Buffer.from(`${line}\r\nHost: a\r\n\r\n`, 'latin1'))).toEqual(refuseInvalidHttp('/'));
  });

  test('is not HTTP after another request, in the same packet or a later one', async () => {
    for (const apart of [false, true]) {
      const connection = await connectTo(service.url);
      const parts = [written('GET /health', [HOST]), written('FOO /health', [HOST, CALLER])];
      connection.send(apart ? (parts[0] as Buffer) : Buffer.concat(parts));
      expect(await connection.answer()).toEqual(probe('healthy'));
      if (apart) connection.send(parts[1] as Buffer);

      expect(await connection.answer()).toEqual(refuseInvalidHttp('/'));
      expect(await connection.rest()).toBe('');
    }
  });
});

describe('a request that the parser refuses', () => {
  test.each([
    ['400', BROKEN, 'bad_request_error'],
    ['431', ['A', 'x'.repeat(20_000)], 'request_header_fields_too_large_error'],
  ] as const)('is %s under its own path and request ID', async (_status, field, code) => {
    const expected = refusal(code, '/nowhere/%22', { headers: { 'x-request-id': 'of-the-caller' } });

    for (const fields of [[CALLER, field] as const, [field, CALLER] as const])
      expect(await send(written('GET /nowhere/"?token=secret', [HOST, ...fields]))).toEqual(expected);
  });

  test.each([
    ['is repeated', 'X-Request-ID: a\r\nX-Request-ID: b\r\nA: b\0c\r\n\r\n'],
    ['is repeated with one value', 'X-Request-ID: a\r\nx-request-id: a\r\nA: b\0c\r\n\r\n'],
    ['has a space in it', 'X-Request-ID: a b\r\nA: b\0c\r\n\r\n'],
    ['is too long', `X-Request-ID: ${'x'.repeat(129)}\r\nA: b\0c\r\n\r\n`],
    ['has a line feed in it', 'X-Request-ID: a\nSet-Cookie: b=c\r\nA: b\0c\r\n\r\n'],
    ['has a carriage return in it', 'X-Request-ID: a\rSet-Cookie: b=c\r\nA: b\0c\r\n\r\n'],
    ['is incomplete', 'A: b\0c\r\nX-Request-ID: a'],
    ['is in the body', 'Content-Length: x\r\n\r\nX-Request-ID: a\r\n\r\n'],
    ['has no colon', 'A: b\0c\r\nX-Request-ID\r\n\r\n'],
  ])('has a new request ID if its own %s', async (_case, rest) => {
    expect(await send(`GET /health HTTP/1.1\r\nHost: a\r\n${rest}`)).toEqual(refuseInvalidHttp('/health'));
  });

  test('does not depend on the beginning of a later packet', async () => {
    const connection = await connectTo(service.url);
    connection.send('GET /health HTTP/1.1\r\nHost: a\r\nA: ');
    await new Promise((resolve) => setTimeout(resolve, 100));
    connection.send(written('GET /elsewhere', [CALLER, BROKEN]));

    expect(await connection.answer()).toEqual(refuseInvalidHttp('/'));
    expect(await connection.rest()).toBe('');
  });
});

describe('CONNECT', () => {
  test.each(['example.com:443', '/health'])("is 400 under the caller's request ID: %s", async (target) => {
    expect(await send(written(`CONNECT ${target}`, [HOST, CALLER]))).toEqual(
      refuseInvalidHttp('/', { 'x-request-id': 'of-the-caller' }),
    );
  });

  test('has a new request ID if it has two', async () => {
    const { headers } = await send(written('CONNECT example.com:443', [HOST, CALLER, CALLER]));

    expect(headers['x-request-id']).toMatch(UUID_4);
  });

  test('has its response after that of the request before it', async () => {
    const connection = await connectTo(service.url);
    connection.send(
      Buffer.concat([written('GET /ready', [HOST]), written('CONNECT example.com:443', [HOST, CALLER])]),
    );

    expect(await connection.answer()).toEqual(probe('ready'));
    expect(await connection.answer()).toEqual(refuseInvalidHttp('/', { 'x-request-id': 'of-the-caller' }));
    expect(await connection.rest()).toBe('');
  });

  // A reset without a listener is an uncaught exception, which vitest reports.
  test('from a client that resets the connection does not harm the service', async () => {
    const connection = await connectTo(service.url);
    connection.send(written('CONNECT example.com:443', [HOST]));
    expect((await connection.answer()).status).toBe(400);
    connection.abort();

    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await fetch(`${service.url}/health`)).status).toBe(200);
  });
});
