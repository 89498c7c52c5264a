import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';

const USERS = 1000;
const REQUESTS = 5;

test('answers that the client has not taken yet are sent whole before the exit', async () => {
  const service = await startBuiltService();
  const client = new pg.Client({ ...service.database, ssl: false });
  await client.connect();
  await client.query(`
    INSERT INTO users (id, email, full_name)
    SELECT gen_random_uuid(), n || '@example.com', repeat('\u{1F600}', 255) FROM generate_series(1, ${USERS}) AS n`);
  await client.end();

  // More than the buffers of both sides hold, on one connection whose client does not read.
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').pause();
  const request = [
    `GET /api/v1/users/?limit=${USERS} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${await service.issuer.sign()}`,
  ];
  socket.write(`${request.join('\r\n')}\r\n\r\n`.repeat(REQUESTS));
  await sleep(1500);
  service.signal('SIGTERM');
  await sleep(100);
  const received = Buffer.concat(await socket.toArray()).toString();
  const exit = await service.exited;
  await service.remove();

  const bodies = received.split(/HTTP\/1\.1 200 OK\r\n[^[]*\r\n\r\n/).slice(1);
  expect(bodies.map((body) => JSON.parse(body).length)).toEqual(Array(REQUESTS).fill(USERS));
  expect(exit).toEqual({ code: 0, signal: null });
});
