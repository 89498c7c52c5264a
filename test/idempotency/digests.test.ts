import { expect, test } from 'vitest';
import { postingUnderKeys } from '../stage/keyed.ts';
import { BATCH, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const post = postingUnderKeys(service.call);

const items = [
  { email: 'grace@example.com', full_name: 'Grace Hopper' },
  { email: 'alan@example.com' },
  { email: 'none', full_name: 7 },
  { full_name: null },
  [],
  'no user',
];

/**
 * SHA-256 of key and values as version 1.1.0 stored it. If a digest changed, keys in use would be 422 after an
 * upgrade.
 */
test.each([
  [
    'of an email',
    USERS,
    { email: 'ada@example.com' },
    'b58b4a4e248784bd54fd1a6bff12ce8d68217b68215da515935420ef8d1948f9',
  ],
  [
    'of an email and null',
    USERS,
    { email: 'bob@example.com', full_name: null, is_active: false },
    'c28538ff413be5ea850fb57c5634b7ae3f48f15834aa443a9e0bc5de2d855d78',
  ],
  [
    'of a partial batch with refused items',
    BATCH,
    { items, mode: 'partial' },
    '7e9807048faf18df673b11c3939868d6aafe678c1c0fdf9e75b5c9cc79d24d65',
  ],
])('the stored digest %s is the same in every version', async (key, path, body, digest) => {
  const { status } = await post(path, key.replaceAll(' ', '-'), body);
  const [row] = await service.database.query(
    "SELECT encode(request, 'hex') AS digest FROM idempotency_keys ORDER BY created_at DESC LIMIT 1",
  );

  expect(status).toBeLessThan(300);
  expect(row?.digest).toBe(digest);
});
