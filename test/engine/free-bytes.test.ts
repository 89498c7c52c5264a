import { expect, test } from 'vitest';
import { freeBytes } from '../../lib/free-bytes.ts';

const MEGABYTE = 1_000_000;

test('the memory of a buffer is freed at once', () => {
  const bytes = Buffer.alloc(50 * MEGABYTE, 'x');
  const before = process.memoryUsage().arrayBuffers;
  freeBytes(bytes);

  expect(before - process.memoryUsage().arrayBuffers).toBeGreaterThan(40 * MEGABYTE);
});

test('the memory of a buffer is not freed if it is shared', () => {
  const shared = Buffer.alloc(2 * MEGABYTE, 'x');
  freeBytes(shared.subarray(MEGABYTE));
  const short = [Buffer.from('one'), Buffer.from('two')] as const;
  freeBytes(short[0]);

  expect(shared).toHaveLength(2 * MEGABYTE);
  expect(String(short)).toBe('one,two');
});
