import { expect, onTestFinished, test, vi } from 'vitest';
import type { PostgresClient } from '../../lib/postgres/sessions/postgres-client.ts';
import { SessionOpening } from '../../lib/postgres/sessions/session-opening.ts';

test('while every second attempt to connect fails, at most five attempts per second fail', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const failures: number[] = [];
  let count = 0;
  const openInTime = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    count += 1;
    if (count % 2 === 0) return;
    failures.push(performance.now());
    throw new Error('refused');
  };
  const attempts = new SessionOpening(() => {});
  const openTen = (): Promise<unknown> =>
    Promise.allSettled(
      Array.from({ length: 10 }, () => attempts.open({ openInTime } as PostgresClient)),
    ).then(openTen);
  void openTen();
  await vi.advanceTimersByTimeAsync(2500);

  const within = (from: number) => failures.filter((at) => at >= from && at < from + 1000).length;
  expect(failures.length).toBeGreaterThan(5);
  expect(Math.max(...failures.map(within))).toBeLessThanOrEqual(5);
});
