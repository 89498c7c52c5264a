import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createRefusalBudget } from '../../host/refusal-budget.ts';
import { createRoom } from '../../host/room.ts';
import { createUnread } from '../../host/unread.ts';
import { connectTo, written } from '../stage/connection.ts';

describe('the budget of refusals', () => {
  /** A budget, and a clock of its own in milliseconds. */
  function start() {
    let time = 0;
    const budget = createRefusalBudget(() => time);
    return {
      budget,
      pass(milliseconds: number) {
        time += milliseconds;
      },
      /** Refuses with so much work. */
      refuse: (milliseconds: number) =>
        budget.spend(() => {
          time += milliseconds;
        }),
    };
  }

  test('is a fifth of the time, whatever they cost', () => {
    const { budget, pass, refuse } = start();
    let spent = 0;
    while (budget.affordable() >= 1) refuse(0.02);
    for (let millisecond = 0; millisecond < 10_000; millisecond += 1) {
      while (budget.affordable() >= 1) {
        refuse(0.02);
        // The same again has gone into receiving it.
        pass(0.02);
        spent += 0.04;
      }
      pass(1);
    }
    expect(spent / (10_000 + spent)).toBeCloseTo(0.2, 2);
  });

  test('pays off a debt before it pays for more', () => {
    const { budget, pass, refuse } = start();
    for (let count = 0; count < 100; count += 1) refuse(0.2);
    pass(70);
    expect(budget.affordable()).toBeLessThan(1);
    pass(20);
    expect(budget.affordable()).toBeGreaterThan(1);
  });
});

describe('the room at the door', () => {
  test('follows the pace, so that the last one who waits is let in within 0.6 seconds', () => {
    const room = createRoom();
    for (let time = 0; time <= 10_000; time += 100) {
      room.onLetIn(100);
      room.measure(time);
    }
    expect(room.size).toBeCloseTo(600, 0);
  });

  test('is a small one when nobody is let in any more, and as at first once all are', () => {
    const room = createRoom();
    const { size } = room;
    for (let time = 0; time <= 10_000; time += 100) room.measure(time);
    expect(room.size).toBe(128);
    room.reset();
    expect(room.size).toBe(size);
  });
});

test('from a connection left unread nothing is received until it is read again, the last one first', async ({
  onTestFinished,
}) => {
  const unread = createUnread();
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(request.url ?? '');
    response.setHeader('Content-Length', 2).end('ok');
    if (request.url?.startsWith('/leave')) unread.leave(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = async (connection: Awaited<ReturnType<typeof connectTo>>, path: string) => {
    connection.send(written(`GET ${path}`, [['Host', 'a']]));
    return (await connection.answer()).body;
  };
  const [first, second, third] = [await connectTo(url), await connectTo(url), await connectTo(url)];
  await ask(first, '/leave/1');
  await ask(second, '/leave/2');
  await ask(third, '/');
  expect(unread.size).toBe(2);

  first.send(written('GET /1', [['Host', 'a']]));
  second.send(written('GET /2', [['Host', 'a']]));
  await ask(third, '/');
  await ask(third, '/');
  expect(received).toEqual(['/leave/1', '/leave/2', '/', '/', '/']);

  unread.read(1);
  expect((await second.answer()).body).toBe('ok');
  unread.read(1);
  expect((await first.answer()).body).toBe('ok');
  expect(received.slice(5)).toEqual(['/2', '/1']);
  expect(unread.size).toBe(0);
});
