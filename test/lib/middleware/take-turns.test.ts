import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RequestInStack } from '../../../lib/middleware/middleware.ts';
import { takeTurns } from '../../../lib/middleware/take-turns.ts';

/** As in take-turns.ts; in milliseconds. */
const MOST = 8;
const LONGEST = 20;

/** A route's requests, numbered as they come; those in `begun` have or had their turn. */
function start() {
  const { before, after, onError } = takeTurns();
  const requests: RequestInStack[] = [];
  const begun: number[] = [];
  const requestAt = (index: number) => requests[index] as RequestInStack;

  async function receive(): Promise<void> {
    const index = requests.push({ context: {} } as RequestInStack) - 1;
    await before?.(requestAt(index));
    begun.push(index);
  }

  return {
    begun,
    receive: (count: number) => Promise.all(Array.from({ length: count }, receive)),
    answer: (index: number) => after?.(requestAt(index)),
    refuse: (index: number) => onError?.(requestAt(index)),
  };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Until what has become of promises is known. */
const settled = () => new Promise(setImmediate);

test('eight have their turn at once, and each that ends makes way for the next', async () => {
  const { begun, receive, answer, refuse } = start();
  void receive(MOST + 3);
  await settled();
  expect(begun).toEqual(upTo(MOST));

  answer(3);
  // As when it fails on its way out.
  refuse(3);
  await settled();
  expect(begun).toEqual(upTo(MOST + 1));

  refuse(5);
  answer(0);
  await settled();
  expect(begun).toEqual(upTo(MOST + 3));
});

test('whoever waits for PostgreSQL makes way before it is answered, and only once', async () => {
  const { begun, receive, answer } = start();
  const from = performance.now();
  await receive(3 * MOST);
  expect(performance.now() - from).toBeGreaterThan(LONGEST);
  expect(begun).toEqual(upTo(3 * MOST));

  await sleep(3 * LONGEST);
  for (const index of upTo(3 * MOST)) answer(index);
  void receive(MOST + 1);
  await settled();
  expect(begun).toEqual(upTo(4 * MOST));
});
