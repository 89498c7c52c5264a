import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { connectAndSend, connectTo, lastResponse, requestText } from '../stage/connection.ts';
import { freshAddress, probe, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest(() => ({ SVC_REQUIRE_IF_MATCH: 'true' }));

const send = (...request: [content: string | Buffer, { isHalfClosed: boolean }?]) =>
  lastResponse(service.url, ...request);

/** A create, up to the header fields of its length. */
const create = (...framing: string[]) =>
  [
    ...[`POST ${USERS} HTTP/1.1`, 'Host: localhost', `Authorization: ${service.authorization}`],
    ...['Content-Type: application/json', ...framing, '', ''],
  ].join('\r\n');

const usersWith = async (email: string) => (await service.call('GET', `${USERS}?email=${email}`)).body;

describe('400 closes the connection after a request that is not HTTP:', () => {
  test.each([
    ['a line of text', 'hello\r\n\r\n'],
    ['a TLS handshake', Buffer.from('16030100c8010000c4030300', 'hex')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown version', 'GET /health HTTP/9.9\r\nHost: a\r\n\r\n'],
    ['lines that end with a bare LF', 'GET /health HTTP/1.1\nHost: a\n\n'],
    ['a control character in the target', 'GET /hea\x01lth HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a byte above 7F in the target', Buffer.from('GET /h\xe9 HTTP/1.1\r\nHost: a\r\n\r\n', 'latin1')],
    ['a field without a colon', 'GET /health HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n'],
    ['white space before the colon', 'GET /health HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n'],
    ['a folded field', 'GET /health HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n'],
  ])('%s', async (_case, content) => {
    expect(await send(content)).toEqual(refusal('bad_request_error', '/'));
  });

  test.each([
    ['a negative length', ['Content-Length: -1']],
    ['a length beyond all numbers', ['Content-Length: 99999999999999999999999']],
    ['two lengths', ['Content-Length: 2', 'Content-Length: 3']],
    ['a list of lengths', ['Content-Length: 2, 2']],
    ['a length and chunks', ['Content-Length: 2', 'Transfer-Encoding: chunked']],
    ['repeated chunks', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['chunks that are encoded again', ['Transfer-Encoding: chunked, gzip']],
  ])('%s', async (_case, framing) => {
    expect(await send(`${create(...framing)}{}`)).toEqual(refusal('bad_request_error', '/'));
  });

  test('an incomplete head', async () => {
    expect(await send('GET /health HTTP/1.1\r\nHos', { isHalfClosed: true })).toEqual(
      refusal('bad_request_error', '/'),
    );
  });
});

describe('400 is the response to a body that does not match its head:', () => {
  test.each([
    ['a size that is not a number', ['Transfer-Encoding: chunked'], 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a size too small', ['Transfer-Encoding: chunked'], '1\r\n{}\r\n0\r\n\r\n'],
    ['lines that end with a bare LF', ['Transfer-Encoding: chunked'], '2\n{}\n0\n\n'],
    ['an endless extension', ['Transfer-Encoding: chunked'], `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
    ['an encoding that is not chunked', ['Transfer-Encoding: gzip'], '{}'],
  ])('%s', async (_case, framing, body) => {
    expect(await send(create(...framing) + body)).toEqual(refusal('bad_request_error', USERS));
  });

  test.each([
    ['a known length', ['Content-Length: 100'], '{"email":"a@b"'],
    ['chunks', ['Transfer-Encoding: chunked'], '20\r\n{"email":"a@b"'],
  ])("an incomplete body of %s, under the caller's request ID", async (_case, framing, body) => {
    const incomplete = create('X-Request-ID: cut-off', ...framing) + body;
    const headers = { 'x-request-id': 'cut-off' };

    expect(await send(incomplete, { isHalfClosed: true })).toEqual(
      refusal('bad_request_error', USERS, { headers }),
    );
  });
});

describe('the Host header', () => {
  const twice = 'Host: localhost\r\nHost: localhost';
  const refused = refusal('bad_request_error', '/health');

  test.each([
    ['is 400 when it is missing', 'GET /health HTTP/1.1\r\nConnection: close', refused],
    ['is 400 when it is repeated', `GET /health HTTP/1.1\r\n${twice}\r\nConnection: close`, refused],
    [
      'may have a comma in its one value',
      'GET /health HTTP/1.1\r\nHost: a,b\r\nConnection: close',
      probe('healthy'),
    ],
    ['may be missing in HTTP/1.0', 'GET /health HTTP/1.0', probe('healthy')],
  ])('%s', async (_title, head, expected) => {
    expect(await send(`${head}\r\n\r\n`)).toEqual(expected);
  });
});

test.each([
  ['many fields', `GET /health HTTP/1.1\r\nHost: a\r\n${'A: b\r\n'.repeat(20_000)}\r\n`],
  ['the target', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ['a head that never ends', `GET /health HTTP/1.1\r\nHost: a\r\nA: ${'x'.repeat(20_000)}`],
])('431 is the response to headers that are too large: %s', async (_case, content) => {
  expect(await send(content)).toEqual(refusal('request_header_fields_too_large_error', '/'));
});

describe('several requests on one connection', () => {
  test('have their responses in order', async () => {
    const bearer = { Authorization: service.authorization };
    const connection = await connectAndSend(
      service.url,
      requestText(`GET ${USERS}`, { ...bearer, 'X-Request-ID': 'first' }) +
        requestText('GET /health', { 'X-Request-ID': 'second' }) +
        requestText(`GET ${USERS}42`, { ...bearer, 'X-Request-ID': 'third' }) +
        requestText('GET /nowhere', { 'X-Request-ID': 'fourth', Connection: 'close' }),
    );

    const responses = [];
    for (let count = 0; count < 4; count += 1) responses.push(await connection.answer());
    expect(responses.map(({ status, headers }) => [status, headers['x-request-id']])).toEqual([
      [200, 'first'],
      [200, 'second'],
      [422, 'third'],
      [404, 'fourth'],
    ]);
    expect(await connection.rest()).toBe('');
  });

  test('include the bytes after the length of a body, as a request that is 400', async () => {
    const body = JSON.stringify({ email: freshAddress() });
    const connection = await connectAndSend(
      service.url,
      `${create(`Content-Length: ${body.length}`)}${body}{"email":"smuggled@example.com"}\r\n\r\n`,
    );

    expect((await connection.answer()).status).toBe(201);
    expect(await connection.answer()).toEqual(refusal('bad_request_error', '/'));
    expect(await connection.rest()).toBe('');
    expect(await usersWith('smuggled@example.com')).toEqual([]);
  });
});

describe('Expect: 100-continue', () => {
  /** The head of a request with a valid token. */
  const expectant = (line: string, fields: Record<string, string>) =>
    requestText(line, { Authorization: service.authorization, Expect: '100-continue', ...fields });

  test('is followed by 100 and then by the response, for an accepted caller', async () => {
    const body = JSON.stringify({ email: freshAddress() });
    const connection = await connectAndSend(
      service.url,
      create(`Content-Length: ${body.length}`, 'Expect: 100-continue'),
    );

    expect(await connection.answer()).toEqual({ status: 100, headers: {}, body: '' });
    connection.send(body);
    expect((await connection.answer()).status).toBe(201);
    connection.close();
  });

  const LENGTH = { 'Content-Length': '60' };
  const REFUSED: readonly (readonly [status: number, line: string, fields: Record<string, string>])[] = [
    [401, `POST ${USERS}`, { ...LENGTH, Authorization: 'Bearer no.such.token' }],
    [404, 'POST /nowhere', LENGTH],
    [404, `DELETE ${USERS}${randomUUID()}`, { ...LENGTH, 'If-Match': '"1"' }],
    [405, `PUT ${USERS}`, LENGTH],
    [413, `POST ${USERS}`, { 'Content-Length': '65537', 'Content-Type': 'application/json' }],
    [415, `POST ${USERS}`, { ...LENGTH, Expect: 'other, 100-Continue' }],
    [415, `POST ${USERS}`, { 'Transfer-Encoding': 'chunked' }],
    [422, `GET ${USERS}no-uuid`, LENGTH],
    [428, `PATCH ${USERS}${randomUUID()}`, { ...LENGTH, 'Content-Type': 'application/json' }],
  ];

  test.each(REFUSED)(
    'is refused with %i, without 100, on a connection that ends: %s %j',
    async (status, line, fields) => {
      const client = await connectAndSend(service.url, expectant(line, fields));
      const closed = once(client.socket, 'close');

      // The service ends its side with the response.
      expect(await client.untilOver(10_000)).toBe(true);
      expect(client.received).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\r\nConnection: close\r\n`, 's'));
      // What follows is neither the body nor a request, and does not reset the connection.
      for (const next of [requestText('GET /health', {}), 'x'.repeat(5000), 'GET /health']) client.send(next);
      client.halfClose();
      expect(await closed).toEqual([false]);
      expect(client.statuses()).toEqual([status]);
    },
  );

  test('is refused with a response that a client that sends its whole body at once can read', async () => {
    const fields = { Expect: '100-continue', 'Content-Length': '60000' };
    for (let times = 0; times < 20; times += 1) {
      const connection = await connectAndSend(service.url, requestText(`POST ${USERS}`, fields));
      for (let part = 0; part < 2; part += 1) connection.send('x'.repeat(30_000));

      expect(await connection.answer()).toEqual(refusal('unauthorized_error', USERS));
      expect(connection.wasReset).toBe(false);
      connection.close();
    }
  });

  test('is followed by 100, also without a body, or with one that is not read', async () => {
    const connection = await connectTo(service.url);
    const { id } = await service.createUser();
    for (const [line, status, length] of [
      ['GET /health', 200, 0],
      [`HEAD ${USERS}`, 200, 0],
      [`OPTIONS ${USERS}`, 204, 2],
      [`DELETE ${USERS}${id}`, 204, 2],
      ['GET /nowhere', 404, 0],
    ] as const) {
      connection.send(expectant(line, { 'If-Match': '*', 'Content-Length': String(length) }));
      expect(await connection.answer()).toEqual({ status: 100, headers: {}, body: '' });
      expect((await connection.answer({ toHead: line.startsWith('HEAD') })).status).toBe(status);
      connection.send('x'.repeat(length));
    }
    connection.close();
  });

  test('is ignored in HTTP/1.0, which has no 100', async () => {
    const body = JSON.stringify({ email: freshAddress() });
    const head = create(`Content-Length: ${body.length}`, 'Expect: 100-continue');

    expect((await send(head.replace('HTTP/1.1', 'HTTP/1.0') + body)).status).toBe(201);
    expect(await send('GET /health HTTP/1.0\r\nExpect: 100-continue\r\n\r\n')).toEqual(probe('healthy'));
  });
});

test('an offer to upgrade is ignored', async () => {
  const fields = { Connection: 'Upgrade, close', Upgrade: 'websocket' };

  expect(await send(requestText('GET /health', fields))).toEqual(probe('healthy'));
});

test('a client that disconnects at any stage stores nothing', async () => {
  const email = freshAddress();
  const body = JSON.stringify({ email });
  const whole = create(`Content-Length: ${body.length}`) + body;
  for (const length of [1, 20, whole.length - 40, whole.length - 1]) {
    const connection = await connectAndSend(service.url, whole.slice(0, length));
    await new Promise((resolve) => connection.socket.write('', resolve));
    connection.abort();
  }

  expect(await usersWith(email)).toEqual([]);
  const refused = (await service.events()).filter(({ path, status_code }) => path === USERS && status_code);
  expect(refused.filter(({ status_code }) => Number(status_code) >= 500)).toEqual([]);
});
