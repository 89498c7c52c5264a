import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectTo, lastAnswer, written } from '../stage/connection.ts';
import { ACCEPT_PATCH, freshAddress, readResponse, refusal, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';
const LIMIT = 65_536;

let service: Awaited<ReturnType<typeof startService>>;
let authorization: string;
let path: string;

beforeAll(async () => {
  service = await startService();
  authorization = `Bearer ${await service.issuer.sign()}`;
  const created = await send('POST', USERS, JSON.stringify({ email: freshAddress() }));
  path = USERS + (created.body as UserBody).id;
});

afterAll(() => service.stop());

async function send(
  method: string,
  to: string,
  body: string | Uint8Array | ReadableStream,
  headers: Record<string, string> = {},
) {
  const all = { authorization, 'content-type': 'application/json', ...headers };
  const init = { method, headers: all, body, duplex: 'half' } as unknown as RequestInit;
  return readResponse(await fetch(`${service.url}${to}`, init));
}

/** A create of exactly `size` bytes. */
function createOf(size: number): string {
  const shortest = JSON.stringify({ email: freshAddress(), note: '' });
  return shortest.replace('""', `"${'x'.repeat(size - shortest.length)}"`);
}

describe('a body is JSON if it is declared', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"; profile=x',
    'Application/JSON',
    'application/vnd.example.user+json',
    'application/ld+json; q=1',
  ])('as %s', async (type) => {
    const headers = { 'content-type': type };

    expect((await send('POST', USERS, createOf(100), headers)).status).toBe(201);
    expect((await send('PATCH', path, '{}', headers)).status).toBe(200);
  });

  test('as application/merge-patch+json on PATCH', async () => {
    const headers = { 'content-type': 'application/merge-patch+json' };

    expect((await send('PATCH', path, '{}', headers)).status).toBe(200);
  });
});

describe('415, on PATCH with Accept-Patch, is the response', () => {
  test.each([
    'text/plain',
    'text/json',
    'application/jsonp',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=json',
    'application/octet-stream',
    'application/xml',
    'application/json, text/plain',
    'json',
    '*/*',
    ' ',
  ])('to a body declared as %j', async (type) => {
    const headers = { 'content-type': type };

    expect(await send('POST', USERS, createOf(100), headers)).toEqual(
      refusal('unsupported_media_type_error', USERS),
    );
    expect(await send('PATCH', path, '{}', headers)).toEqual(
      refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
    );
  });

  test('to a body without Content-Type, and to no body', async () => {
    for (const body of ['{}', '']) {
      const fields = [
        ['Host', 'localhost'],
        ['Authorization', authorization],
        ['Content-Length', String(body.length)],
        ['Connection', 'close'],
      ] as const;

      expect(await lastAnswer(service.url, written(`PATCH ${path}`, fields, body))).toEqual(
        refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
      );
    }
  });

  test('to two Content-Types', async () => {
    const fields = [
      ['Host', 'localhost'],
      ['Authorization', authorization],
      ['Content-Type', 'application/json'],
      ['Content-Type', 'text/plain'],
      ['Content-Length', '2'],
      ['Connection', 'close'],
    ] as const;

    expect(await lastAnswer(service.url, written(`PATCH ${path}`, fields, '{}'))).toEqual(
      refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
    );
  });

  test.each(['gzip', 'br', 'deflate', 'identity', 'gzip, br', 'none'])(
    'to the Content-Encoding %s',
    async (encoding) => {
      const headers = { 'content-encoding': encoding };

      expect(await send('POST', USERS, createOf(100), headers)).toEqual(
        refusal('unsupported_media_type_error', USERS),
      );
      expect(await send('PATCH', path, '{}', headers)).toEqual(
        refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
      );
    },
  );
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

  test('by the count of bytes, not of characters', async () => {
    const body = JSON.stringify({ email: freshAddress(), note: '🌍'.repeat(LIMIT / 4) });

    expect(body.length).toBeLessThan(LIMIT);
    expect(await send('POST', USERS, body)).toEqual(refusal('payload_too_large_error', USERS));
  });

  test('by Content-Length alone, before the body arrives', async () => {
    const connection = await connectTo(service.url);
    const fields = [
      ['Host', 'localhost'],
      ['Authorization', authorization],
      ['Content-Type', 'application/json'],
      ['Content-Length', '99999999999'],
    ] as const;
    connection.send(written(`POST ${USERS}`, fields));

    expect(await connection.answer()).toEqual(refusal('payload_too_large_error', USERS));
    connection.close();
  });

  test('while an endless body is still arriving', async () => {
    const connection = await connectTo(service.url);
    const fields = [
      ['Host', 'localhost'],
      ['Authorization', authorization],
      ['Content-Type', 'application/json'],
      ['Transfer-Encoding', 'chunked'],
    ] as const;
    connection.send(written(`POST ${USERS}`, fields));
    for (let sent = 0; sent <= LIMIT; sent += 4096) connection.send(`1000\r\n${'x'.repeat(4096)}\r\n`);

    expect(await connection.answer()).toEqual(refusal('payload_too_large_error', USERS));
    connection.close();
  });

  test('on a connection that then serves the next request', async () => {
    const connection = await connectTo(service.url);
    const body = createOf(LIMIT + 1);
    const fields = [
      ['Host', 'localhost'],
      ['Authorization', authorization],
      ['Content-Type', 'application/json'],
      ['Content-Length', String(body.length)],
    ] as const;
    connection.send(written(`POST ${USERS}`, fields, body));
    expect(await connection.answer()).toEqual(refusal('payload_too_large_error', USERS));

    connection.send(written('GET /health', [['Host', 'localhost']]));
    expect((await connection.answer()).status).toBe(200);
    connection.close();
  });

  test('at the size that SVC_BODY_LIMIT names', async () => {
    const other = await startService({ SVC_BODY_LIMIT: '1024' });
    const init = { headers: { 'content-type': 'application/json' } };
    const responses = [
      await other.call('POST', USERS, undefined, { ...init, body: createOf(1024) }),
      await other.call('POST', USERS, undefined, { ...init, body: createOf(1025) }),
    ];
    await other.stop();

    expect(responses.map(({ status }) => status)).toEqual([201, 413]);
  });
});

describe('422 is the response', () => {
  test.each([
    ['that is empty', ''],
    ['that is white space', ' \n'],
    ['that is not JSON', '{"email": "a@b", }'],
    ['in single quotes', "{'email': 'a@b'}"],
    ['that is incomplete', '{"email": "a@b"'],
    ['of two values', '{"email": "a@b"} {}'],
    ['with a byte order mark', '\uFEFF{"email": "a@b"}'],
    ['with NaN in it', '{"email": "a@b", "n": NaN}'],
    ['that is null', 'null'],
    ['that is an array', '[{"email": "a@b"}]'],
    ['that is a string', '"a@b"'],
    ['that is a number', '42'],
    ['that is true', 'true'],
  ])('to a body %s', async (_case, body) => {
    expect(await send('POST', USERS, body)).toEqual(refusal('validation_error', USERS, { errors: ['#'] }));
    expect(await send('PATCH', path, body)).toEqual(refusal('validation_error', path, { errors: ['#'] }));
  });

  test.each([
    ['ff', 'a byte that UTF-8 has not'],
    ['c080', 'U+0000 in two bytes'],
    ['eda080', 'a surrogate'],
    ['f4908080', 'more than U+10FFFF'],
    ['e282', 'half a character'],
  ])('to a body that is not UTF-8: %s, %s', async (bytes) => {
    const body = Buffer.concat([
      Buffer.from(`{"email":"${freshAddress()}","full_name":"`),
      Buffer.from(bytes, 'hex'),
      Buffer.from('"}'),
    ]);

    expect(await send('POST', USERS, body)).toEqual(refusal('validation_error', USERS, { errors: ['#'] }));
  });

  test('to a body in UTF-16', async () => {
    const body = Buffer.from(JSON.stringify({ email: freshAddress() }), 'utf16le');

    // In UTF-8 these bytes are characters, too, with U+0000 between them.
    expect(await send('POST', USERS, body)).toEqual(refusal('validation_error', USERS, { errors: ['#'] }));
  });

  test('to a body nested without end, instead of 500', async () => {
    const depth = 30_000;
    const body = `${'['.repeat(depth)}${']'.repeat(depth)}`;

    expect(await send('POST', USERS, body)).toEqual(refusal('validation_error', USERS, { errors: ['#'] }));
  });

  test('not to a deeply nested unknown member', async () => {
    const depth = 30_000;
    const body = `{"email":"${freshAddress()}","deep":${'['.repeat(depth)}${']'.repeat(depth)}}`;

    expect((await send('POST', USERS, body)).status).toBe(201);
  });
});

test('a body is ignored if the operation has none', async () => {
  const connection = await connectTo(service.url);
  const fields = [
    ['Host', 'localhost'],
    ['Authorization', authorization],
    ['Content-Length', '7'],
  ] as const;
  connection.send(written(`GET ${path}`, fields, '{"a":1}'));
  expect((await connection.answer()).status).toBe(200);

  connection.send(written(`GET ${USERS}?limit=1`, [...fields, ['Connection', 'close']], 'garbage'));
  expect((await connection.answer()).status).toBe(200);
  expect(await connection.rest()).toBe('');
});

describe('a missing body is an empty body', () => {
  test.each([
    ['by its length', [['Content-Length', '0']]],
    ['without a word of it', []],
    ['to a caller that waits for 100', [['Expect', '100-continue']]],
  ] as const)('%s', async (_case, fields) => {
    const connection = await connectTo(service.url);
    const head = [
      ['Host', 'service.test'],
      ['Authorization', authorization],
      ['Content-Type', 'application/json'],
      ...fields,
    ] as const;
    for (const [method, to] of [
      ['POST', USERS],
      ['PATCH', path],
      ['POST', `${USERS}batch`],
    ] as const) {
      connection.send(written(`${method} ${to}`, head));
      expect(await connection.answer()).toEqual(refusal('validation_error', to, { errors: 'any' }));
    }
    connection.close();
  });
});
