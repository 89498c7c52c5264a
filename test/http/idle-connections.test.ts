import { IncomingMessage, ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectTo, written } from '../stage/connection.ts';
import { requestText } from '../stage/raw-client.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const CONNECTIONS = 200;
const body = Buffer.from(JSON.stringify({ email: 'a@b', full_name: 'x'.repeat(60_000) }));

let service: Awaited<ReturnType<typeof startService>>;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.stop());

/** In bytes. */
function memory(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test('a connection that waits for its next request keeps no part of the last body', async () => {
  const authorization = `Bearer ${await service.issuer.sign()}`;
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => connectTo(service.url)));
  const send = (content: Buffer) => {
    const request = requestText('POST /api/v1/users/', {
      Authorization: authorization,
      'Content-Type': 'application/json',
      'Content-Length': String(content.length),
    });
    return Promise.all(
      connections.map(async (connection) => {
        connection.send(request);
        connection.send(content);
        return (await connection.answer()).status;
      }),
    );
  };
  await send(Buffer.from('{}'));
  const before = memory();

  expect(new Set(await send(body))).toEqual(new Set([422]));
  expect(memory() - before).toBeLessThan((CONNECTIONS * body.length) / 3);
  for (const connection of connections) connection.close();
});

/** Requests and responses that are still reachable after a garbage collection. */
const alive = () => [IncomingMessage, ServerResponse].map((type) => queryObjects(type));

test('a connection that waits for its next request does not keep the last request and its response', async () => {
  const fields = [
    ['Host', 'service.test'],
    ['Authorization', `Bearer ${await service.issuer.sign()}`],
  ] as const;
  const before = alive();

  const connections = await Promise.all(Array.from({ length: 20 }, () => connectTo(service.url)));
  for (const connection of connections) {
    connection.send(written('GET /api/v1/users/', fields));
    expect(await connection.answer()).toMatchObject({ status: 200 });
  }

  expect(alive()).toEqual(before);
  for (const connection of connections) connection.close();
});

test('a connection does not keep a request that was refused before its body arrived', async () => {
  const head = requestText('POST /api/v1/users/', {
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
  });
  const before = alive();

  const connections = await Promise.all(Array.from({ length: 20 }, () => connectTo(service.url)));
  for (const [index, connection] of connections.entries()) {
    // Every second body arrives after the response.
    connection.send(index % 2 === 0 ? Buffer.concat([Buffer.from(head), body]) : head);
    expect(await connection.answer()).toMatchObject({ status: 401 });
    if (index % 2 === 1) connection.send(body);
  }

  await until('all is received and forgotten', () => isDeepStrictEqual(alive(), before));
  for (const connection of connections) connection.close();
});
