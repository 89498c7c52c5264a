import { expect, test } from 'vitest';
import type { Connection } from './connection.ts';
import { startPaced, startUnpaced } from './pacing.ts';

const connection: Connection = { send: () => {}, close: () => {} };

test('without a pace each connection asks again when it is answered, and not before', () => {
  const waiting: (() => void)[] = [];
  startUnpaced([connection, connection], (_, __, then) => waiting.push(then));
  expect(waiting).toHaveLength(2);
  waiting[0]?.();
  expect(waiting).toHaveLength(3);
});

test('with a pace requests wait for a free connection, and are timed from when they were due', async () => {
  const due: number[] = [];
  let [onTheirWay, most] = [0, 0];
  const { promise: isSent, resolve } = Promise.withResolvers<void>();
  const begun = performance.now();
  const timer = startPaced([connection], 1000, (_, moment, then) => {
    due.push(moment);
    onTheirWay += 1;
    most = Math.max(most, onTheirWay);
    const answer = () => {
      onTheirWay -= 1;
      then();
    };
    if (due.length === 100) resolve();
    // The first answer comes late; all that have become due meanwhile are sent one after another.
    else if (due.length === 1) setTimeout(answer, 50);
    else setImmediate(answer);
  });
  await isSent;
  clearInterval(timer);
  const steps = due.slice(1).map((moment, index) => moment - (due[index] ?? 0));
  expect(Math.min(...steps)).toBeCloseTo(1);
  expect(Math.max(...steps)).toBeCloseTo(1);
  expect(most).toBe(1);
  expect(due[0]).toBeGreaterThanOrEqual(begun);
});
