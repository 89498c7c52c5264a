import { IncomingMessage, ServerResponse } from 'node:http';
import { queryObjects } from 'node:v8';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Connection, connectTo, requestText } from '../stage/connection.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const body = JSON.stringify({ email: 'a@b', full_name: 'x'.repeat(60_000) });

const service = serviceUnderTest();

describe('a connection does not keep a request or its response', () => {
  /** Requests and responses that are still reachable after a garbage collection. It takes a second. */
  const alive = () =>
    [IncomingMessage, ServerResponse].map((type) => queryObjects(type, { format: 'count' }));
  let before: readonly number[];

  beforeAll(() => {
    before = alive();
  });

  async function expectForgotten(exchange: (connection: Connection, index: number) => Promise<void>) {
    const connections = await Promise.all(Array.from({ length: 20 }, () => connectTo(service.url)));
    for (const [index, connection] of connections.entries()) await exchange(connection, index);
    // Fewer if those of an earlier file of this process were not collected yet.
    const areForgotten = () => alive().every((count, type) => count <= Number(before[type]));
    await until('all are forgotten', areForgotten);
    for (const connection of connections) connection.close();
  }

  test('that was served, while it waits for its next request', async () => {
    const request = requestText(`GET ${USERS}`, { Authorization: service.authorization });
    await expectForgotten(async (connection) => {
      connection.send(request);
      expect(await connection.answer()).toMatchObject({ status: 200 });
    });
  });

  test('that was refused before its body arrived', async () => {
    const whole = requestText(`POST ${USERS}`, {}, body);
    const head = whole.slice(0, -body.length);
    await expectForgotten(async (connection, index) => {
      // Every second body arrives after the response.
      connection.send(index % 2 === 0 ? whole : head);
      expect(await connection.answer()).toMatchObject({ status: 401 });
      if (index % 2 === 1) connection.send(body);
    });
  });
});
