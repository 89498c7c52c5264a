import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { connectAndSend, requestText } from '../stage/connection.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

describe('a client that sends a large body on a closing connection reads', () => {
  const body = Buffer.alloc(8_000_000, 'x');

  const cutOff: Error[] = [];

  /** Sends the whole body at once, without reading. */
  async function statusOf(headers: Readonly<Record<string, string | number>>): Promise<number | undefined> {
    const sent = request(service.url + USERS, {
      method: 'POST',
      agent: false,
      headers: { connection: 'close', 'content-type': 'application/json', ...headers },
    });
    sent.on('error', (error) => cutOff.push(error)).end(body);
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  }

  test.each([
    ['with a length', { 'content-length': body.length }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ])('its 413 and its 401, %s', async (_case, headers) => {
    const { authorization } = service;
    for (let times = 0; times < 5; times += 1) {
      expect(await statusOf({ authorization, ...headers })).toBe(413);
      expect(await statusOf(headers)).toBe(401);
    }
    expect(cutOff).toEqual([]);
  });
});

test('a client that stops its body after the response does not wait for the end of the connection', async () => {
  const fields = { Connection: 'close', 'Content-Length': '5000000' };
  const begin = requestText(`POST ${USERS}`, fields, 'x'.repeat(80_000));
  const connection = await connectAndSend(service.url, begin);
  expect(await connection.answer()).toMatchObject({ status: 401 });
  const begun = performance.now();
  connection.halfClose();
  await connection.rest();

  expect(performance.now() - begun).toBeLessThan(3000);
});

test('a client that sends more after a parser refusal can read its response before the connection ends', async () => {
  for (let times = 0; times < 5; times += 1) {
    const refused = requestText('BREW /health', {}) + 'x'.repeat(300_000);
    const connection = await connectAndSend(service.url, refused);

    expect(await connection.answer()).toMatchObject({ status: 400 });
    expect(await connection.rest()).toBe('');
    expect(connection.wasReset).toBe(false);
  }
});
