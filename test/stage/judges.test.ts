import { expect, test } from 'vitest';
import { expectEndInOrder } from './end-in-order.ts';
import { BUSY_S, until } from './until.ts';

const endWith = (code: number | null, signal: string | null, seconds = 0) =>
  expectEndInOrder({ signal: () => true, exited: Promise.resolve({ code, signal }) }, seconds - BUSY_S);

test('an end of a process is in order with exit code 0, without a signal, and in time', async () => {
  await endWith(0, null, 1);
  await expect(endWith(1, null, 1)).rejects.toThrow('{ code: 1');
  await expect(endWith(null, 'SIGTERM', 1)).rejects.toThrow('SIGTERM');
  await expect(endWith(0, null)).rejects.toThrow('to be less than');
});

test('a wait for what never happens fails, and says what it is', async () => {
  await expect(until('the event', () => false, { seconds: 0.05 })).rejects.toThrow('the event');
});
