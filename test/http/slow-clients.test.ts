import { describe, expect, test } from 'vitest';
import { connectAndSend, connectTo, requestText } from '../stage/connection.ts';
import { probe, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { BUSY_S } from '../stage/until.ts';

const service = serviceUnderTest();

const INCOMPLETE_HEAD = 'GET /health HTTP/1.1\r\nHost: a\r\nA: ';

/** A create of whose body only the first byte is sent. */
const startCreate = (Authorization: string) =>
  connectAndSend(service.url, requestText(`POST ${USERS}`, { Authorization, 'Content-Length': '100' }, '{'));

// Concurrently, because each waits for a limit of several seconds.
describe.concurrent('a client too slow', () => {
  test('with its head is 408, and its connection ends', async () => {
    const connection = await connectAndSend(service.url, INCOMPLETE_HEAD);

    expect(await connection.answer()).toEqual(refusal('request_timeout_error', '/'));
    expect(await connection.rest()).toBe('');
  });

  test('with its body is 408, and its connection ends', async () => {
    const connection = await startCreate(service.authorization);
    const drip = setInterval(() => connection.send(' '), 1000);
    const started = Date.now();

    expect(await connection.answer()).toEqual(refusal('request_timeout_error', USERS));
    // Slow clients are disconnected within 12 seconds.
    expect(Date.now() - started).toBeLessThan((12 + BUSY_S) * 1000);
    clearInterval(drip);
    expect(await connection.rest()).toBe('');
  });

  test('is not one that has sent nothing yet: its connection stays open, and serves its first request', async () => {
    const silent = await connectTo(service.url);
    const slow = await connectAndSend(service.url, INCOMPLETE_HEAD);
    // By then the limit has passed for both.
    expect(await slow.answer()).toEqual(refusal('request_timeout_error', '/'));
    expect(silent.isQuiet).toBe(true);

    silent.send(requestText('GET /health', {}));
    expect(await silent.answer()).toEqual(probe('healthy'));
    silent.close();
  });

  test('with a body that the service does not need is 401 at once, and its connection ends later', async () => {
    const connection = await startCreate('Bearer no.such.token');
    const started = Date.now();
    expect(await connection.answer()).toEqual(refusal('unauthorized_error', USERS));
    expect(Date.now() - started).toBeLessThan(4000);
    expect(await connection.rest()).toBe('');
  });
});
