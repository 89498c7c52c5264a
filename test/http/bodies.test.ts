import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { RequestEvent } from '../../host/request-event.ts';
import { connectAndSend, connectTo, lastResponse, requestText } from '../stage/connection.ts';
import { listen } from '../stage/listening.ts';
import { ACCEPT_PATCH, BATCH, freshAddress, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const LIMIT = 65_536;
const JSON_TYPE = { 'Content-Type': 'application/json' };
const declared = (type: string) => ({ 'content-type': type });

const service = serviceUnderTest();
let path: string;

beforeAll(async () => {
  path = USERS + (await service.createUser()).id;
});

function send(
  method: string,
  to: string,
  body: string | Uint8Array | ReadableStream,
  headers: Record<string, string> = {},
) {
  const init = { headers: { 'content-type': 'application/json', ...headers }, body, duplex: 'half' };
  return service.call(method, to, undefined, init as RequestInit);
}

/** The text of a request with a valid token. */
const authorized = (line: string, fields: Record<string, string>, body?: string) =>
  requestText(line, { Authorization: service.authorization, ...fields }, body);

/** A create of exactly `size` bytes. */
function createOf(size: number): string {
  const shortest = JSON.stringify({ email: freshAddress(), note: '' });
  return shortest.replace('""', `"${'x'.repeat(size - shortest.length)}"`);
}

describe('a body is JSON if it is declared', () => {
  test.each(['application/json', 'Application/VND.example.user+json;charset="UTF-8"; profile=x'])(
    'as %s',
    async (type) => {
      expect((await send('POST', USERS, createOf(100), declared(type))).status).toBe(201);
      expect((await send('PATCH', path, '{}', declared(type))).status).toBe(200);
    },
  );

  test('as application/merge-patch+json on PATCH', async () => {
    const type = 'application/merge-patch+json';

    expect((await send('PATCH', path, '{}', declared(type))).status).toBe(200);
  });
});

describe('415, on PATCH with Accept-Patch, is the response', () => {
  test.each([
    ...['text/json', 'application/jsonp', 'multipart/form-data; boundary=json'].map(declared),
    ...['application/json, text/plain', 'json', ' '].map(declared),
    ...['gzip', 'identity', 'none'].map((encoding) => ({ 'content-encoding': encoding })),
  ])('to a body with %j', async (headers) => {
    expect(await send('POST', USERS, createOf(100), headers)).toEqual(
      refusal('unsupported_media_type_error', USERS),
    );
    expect(await send('PATCH', path, '{}', headers)).toEqual(
      refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
    );
  });

  test('to a body without Content-Type, and to no body', async () => {
    for (const body of ['{}', '']) {
      const fields = { 'Content-Length': String(body.length), Connection: 'close' };

      expect(await lastResponse(service.url, authorized(`PATCH ${path}`, fields) + body)).toEqual(
        refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
      );
    }
  });
});

describe('413 is the response', () => {
  const streamed = (text: string) => new Blob([text]).stream();

  test('not to a body of exactly SVC_BODY_LIMIT bytes, with and without Content-Length', async () => {
    expect((await send('POST', USERS, createOf(LIMIT))).status).toBe(201);
    expect((await send('POST', USERS, streamed(createOf(LIMIT)))).status).toBe(201);
  });

  test('to a body of one byte more, with and without Content-Length', async () => {
    const expected = refusal('payload_too_large_error', USERS);

    expect(await send('POST', USERS, createOf(LIMIT + 1))).toEqual(expected);
    expect(await send('POST', USERS, streamed(createOf(LIMIT + 1)))).toEqual(expected);
  });

  test.each<[string, Record<string, string>, chunks: number]>([
    ['by Content-Length alone, before the body arrives', { 'Content-Length': '99999999999' }, 0],
    ['while an endless body is still arriving', { 'Transfer-Encoding': 'chunked' }, 1 + LIMIT / 4096],
  ])('%s', async (_case, fields, chunks) => {
    const head = authorized(`POST ${USERS}`, { ...JSON_TYPE, ...fields });
    const connection = await connectAndSend(service.url, head);
    for (let sent = 0; sent < chunks; sent += 1) connection.send(`1000\r\n${'x'.repeat(4096)}\r\n`);

    expect(await connection.answer()).toEqual(refusal('payload_too_large_error', USERS));
    connection.close();
  });

  test('on a connection that then serves the next request', async () => {
    const tooLarge = authorized(`POST ${USERS}`, {}, createOf(LIMIT + 1));
    const connection = await connectAndSend(service.url, tooLarge);
    expect(await connection.answer()).toEqual(refusal('payload_too_large_error', USERS));

    connection.send(requestText('GET /health', {}));
    expect((await connection.answer()).status).toBe(200);
    connection.close();
  });
});

describe('422 is the response', () => {
  const [before = '', after = ''] = '{"email":"not-utf-8@example.com","full_name":"?"}'.split('?');
  const notUtf8 = (hex: string) =>
    Buffer.concat([Buffer.from(before), Buffer.from(hex, 'hex'), Buffer.from(after)]);

  test.each([
    ['that is empty', ''],
    ['that is incomplete', '{"email": "a@b"'],
    ['of two values', '{"email": "a@b"} {}'],
    ['with a byte order mark', '\uFEFF{"email": "a@b"}'],
    ['that is null', 'null'],
    ['that is an array', '[{"email": "a@b"}]'],
    ['that is a string', '"a@b"'],
    ['that is not UTF-8: U+0000 in two bytes', notUtf8('c080')],
    ['that is not UTF-8: a surrogate', notUtf8('eda080')],
    ['that is not UTF-8: half a character', notUtf8('e282')],
  ])('to a body %s', async (_case, body) => {
    expect(await send('POST', USERS, body)).toEqual(refusal('validation_error', USERS, { errors: ['#'] }));
    expect(await send('PATCH', path, body)).toEqual(refusal('validation_error', path, { errors: ['#'] }));
  });

  test('to a body nested without end, instead of 500, but not to a nested unknown member', async () => {
    const nested = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
    const member = `{"email":"${freshAddress()}","deep":${nested}}`;

    expect(await send('POST', USERS, nested)).toEqual(refusal('validation_error', USERS, { errors: ['#'] }));
    expect((await send('POST', USERS, member)).status).toBe(201);
  });
});

test('a body is incomplete if the client disconnects before it is read', { timeout: 10_000 }, async () => {
  const server = createServer();
  const { url } = await listen(server);
  const incomplete = requestText(`POST ${USERS}`, { 'Content-Length': '100' }, '{"email"');
  const connection = await connectAndSend(url, incomplete);
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  const closed = new Promise((resolve) => request.on('error', () => {}).once('close', resolve));
  connection.abort();
  await closed;

  await expect(new RequestEvent(request, response).receiveBody(LIMIT)).rejects.toMatchObject({
    code: 'bad_request_error',
  });
  server.close();
});

test('a body is ignored if the operation has none', async () => {
  const fields = { 'Content-Length': '7' };
  const connection = await connectAndSend(service.url, `${authorized(`GET ${path}`, fields)}{"a":1}`);
  expect((await connection.answer()).status).toBe(200);

  connection.send(`${authorized(`GET ${USERS}?limit=1`, { ...fields, Connection: 'close' })}garbage`);
  expect((await connection.answer()).status).toBe(200);
  expect(await connection.rest()).toBe('');
});

test.each<readonly [string, Record<string, string>]>([
  ['with Content-Length: 0', { 'Content-Length': '0' }],
  ['without Content-Length', {}],
  ['with Expect: 100-continue', { Expect: '100-continue' }],
])('a missing body is an empty body: %s', async (_case, fields) => {
  const connection = await connectTo(service.url);
  for (const line of [`POST ${USERS}`, `PATCH ${path}`, `POST ${BATCH}`]) {
    connection.send(authorized(line, { ...JSON_TYPE, ...fields }));
    if (fields.Expect) expect((await connection.answer()).status).toBe(100);
    const instance = line.split(' ')[1] as string;
    expect(await connection.answer()).toEqual(refusal('validation_error', instance, { errors: 'any' }));
  }
  connection.close();
});
