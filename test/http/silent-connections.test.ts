import { expect, test } from 'vitest';
import { CHANGES } from '../stage/changes.ts';
import { type Connection, connectAndSend, connectTo, requestText } from '../stage/connection.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest(() => ({ SVC_KEEP_ALIVE_TIMEOUT: '1' }));

/** How long a connection stays open after this, in milliseconds. */
async function lifetime(connection: Connection, begun: number): Promise<number> {
  expect(await connection.rest()).toBe('');
  return performance.now() - begun;
}

test('a connection that sends nothing is closed after SVC_KEEP_ALIVE_TIMEOUT', async () => {
  const begun = performance.now();
  expect(await lifetime(await connectTo(service.url), begun)).toBeGreaterThanOrEqual(995);
});

test('a connection that sends nothing after a response is closed after the same time', async () => {
  const connection = await connectTo(service.url);
  const begun = performance.now();
  connection.send(requestText('GET /health', {}));
  expect((await connection.answer()).status).toBe(200);
  expect(await lifetime(connection, begun)).toBeGreaterThanOrEqual(995);
});

test('a connection that waits for its response is not closed', async () => {
  // A silent one would be closed within four seconds.
  const waiting = requestText(`GET ${CHANGES}?cursor=now&wait=5`, { Authorization: service.authorization });
  const connection = await connectAndSend(service.url, waiting);

  expect((await connection.answer()).status).toBe(200);
  expect(await connection.rest()).toBe('');
});

test('every response states how long a connection may be silent, except for the last one of a connection', async () => {
  const keepAliveFields = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(`${service.url}/health`, { headers });
    return ['connection', 'keep-alive'].map((name) => answer.headers.get(name));
  };

  expect(await keepAliveFields()).toEqual(['keep-alive', 'timeout=1']);
  expect(await keepAliveFields({ connection: 'close' })).toEqual(['close', null]);

  const head = 'GET /health HTTP/1.0\r\n';
  const connection = await connectAndSend(service.url, `${head}Connection: keep-alive\r\n\r\n${head}\r\n`);
  const responses = await connection.rest();
  expect(responses.match(/^(Connection|Keep-Alive): .*$/gm)).toEqual([
    'Connection: keep-alive',
    'Connection: close',
  ]);
});
