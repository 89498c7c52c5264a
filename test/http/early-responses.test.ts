import { once } from 'node:events';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectTo, written } from '../stage/connection.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';

let service: Awaited<ReturnType<typeof startService>>;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.stop());

describe('a client that sends a large body on a closing connection reads', () => {
  const body = Buffer.alloc(8_000_000, 'x');

  /** Sends the whole body at once, without reading. */
  async function statusOf(headers: Readonly<Record<string, string | number>>): Promise<number | undefined> {
    const sent = request(service.url + USERS, {
      method: 'POST',
      agent: false,
      headers: { connection: 'close', 'content-type': 'application/json', ...headers },
    });
    sent.end(body);
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  }

  const inChunks = { 'transfer-encoding': 'chunked' };
  const withLength = { 'content-length': body.length };

  test.each([
    ['with a length', withLength],
    ['in chunks', inChunks],
  ])('its 413, %s', async (_case, headers) => {
    const authorization = `Bearer ${await service.issuer.sign()}`;
    for (let times = 0; times < 5; times += 1) {
      expect(await statusOf({ authorization, ...headers })).toBe(413);
    }
  });

  test.each([
    ['with a length', withLength],
    ['in chunks', inChunks],
  ])('its 401, %s', async (_case, headers) => {
    for (let times = 0; times < 5; times += 1) expect(await statusOf(headers)).toBe(401);
  });
});

test('a client that stops its body after the response does not wait for the end of the connection', async () => {
  const connection = await connectTo(service.url);
  const fields = [
    ['Host', 'localhost'],
    ['Connection', 'close'],
    ['Content-Type', 'application/json'],
    ['Content-Length', '5000000'],
  ] as const;
  connection.send(written(`POST ${USERS}`, fields, 'x'.repeat(80_000)));
  expect(await connection.answer()).toMatchObject({ status: 401 });
  const begun = performance.now();
  connection.halfClose();
  await connection.rest();

  expect(performance.now() - begun).toBeLessThan(3000);
});

test('a client that sends more after a parser refusal can read its response before the connection ends', async () => {
  for (let times = 0; times < 5; times += 1) {
    const connection = await connectTo(service.url);
    const head = [['Host', 'localhost']] as const;
    connection.send(written('BREW /health', head, Buffer.alloc(300_000, 'x')));

    expect(await connection.answer()).toMatchObject({ status: 405 });
    expect(await connection.rest()).toBe('');
    expect(connection.wasReset).toBe(false);
  }
});

test('a client that has ended its side gets its response', async () => {
  const body = JSON.stringify({ email: 'half@example.com' });
  const fields = [
    ['Host', 'localhost'],
    ['Authorization', `Bearer ${await service.issuer.sign()}`],
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
  ] as const;
  const connection = await connectTo(service.url);
  connection.send(written(`POST ${USERS}`, fields, body));
  connection.halfClose();

  expect(await connection.answer()).toMatchObject({ status: 201, body: { email: 'half@example.com' } });
  expect(await connection.rest()).toBe('');
});
