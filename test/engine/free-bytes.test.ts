import { expect, test } from 'vitest';
import { freeBytes } from '../../lib/free-bytes.ts';
import { JsonPage } from '../../lib/json/json-writer.ts';

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

test('a page of more than 64 KB has a buffer of its own, so that it can be freed after it is sent', () => {
  const page = new JsonPage();
  page.begin();
  page.text(Buffer.alloc(65_536, 'x'), 0, 65_536);
  const bytes = page.take();

  expect(bytes).toBeInstanceOf(Buffer);
  expect((bytes as Buffer).buffer.byteLength).toBe(bytes.length);
});
