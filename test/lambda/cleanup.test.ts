import { afterAll, beforeAll, expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { startComposition } from '../stage/composition.ts';
import { startFunction } from '../stage/lambda-function.ts';
import { environmentOf } from '../stage/service.ts';

let stage: Awaited<ReturnType<typeof startComposition>>;
let administrator: Awaited<ReturnType<typeof administer>>;

beforeAll(async () => {
  stage = await startComposition();
  administrator = await administer(stage.database.name);
});

afterAll(async () => {
  await administrator.end();
  await stage.stop();
});

test('the scheduled function deletes expired rows', async () => {
  await administrator.query(`
    INSERT INTO idempotency_keys (key, request, user_ids, created_at)
    SELECT decode(lpad(to_hex(n), 8, '0'), 'hex'), '', '{}', now() - n * interval '1 hour'
    FROM generate_series(1, 50) AS n
  `);
  await stage.createUser();
  await administrator.query("UPDATE user_changes_unnumbered SET time = time - interval '31 days'");
  await stage.createUser();
  const maintain = await startFunction('maintain', environmentOf(stage.database, stage.issuer));
  await maintain.call({} as never);
  await maintain.stop();

  expect(await administrator.query('SELECT FROM idempotency_keys')).toHaveLength(23);
  expect(await administrator.query('SELECT position FROM user_changes')).toEqual([{ position: '2' }]);
});
