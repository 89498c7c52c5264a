import { describe, expect, test } from 'vitest';
import { freshKey } from '../stage/keyed.ts';
import { freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { stageOfVersion, startEarlierVersion } from './earlier-version.ts';
import { startWriters, watchLocks } from './writers.ts';

describe.each(['1.0.0', '1.1.0'] as const)('version %s', (version) => {
  const stage = stageOfVersion(version);

  test('serves every request while this version migrates, and no write waits for a second', async () => {
    const { issuer, database, earlier } = stage;
    const locks = await watchLocks(database);
    const writers = startWriters(earlier.url, issuer, 4);
    const latest = await startService({}, { database, issuer });
    const latestWriters = startWriters(latest.url, issuer, 2);
    await new Promise((resolve) => setTimeout(resolve, 1000));

    for (const { wrong, writes } of [await writers.stop(), await latestWriters.stop()]) {
      expect(wrong).toEqual([]);
      expect(writes).toBeGreaterThan(0);
    }
    expect(await locks.stop()).toBeLessThan(1);
    await latest.stop();
  });

  test('ignores external_id in a request, keeps stored ones, and leaves them out of changed, also after a rollback', async () => {
    const { folder, issuer, database, earlier, callerAt } = stage;
    const latest = await startService({}, { database, issuer });
    const young = callerAt(latest.url);
    const email = freshAddress();
    const { id } = (await young('POST', USERS, { email, external_id: 'hr-1' })).body as UserBody;
    await young('PATCH', USERS + id, { external_id: 'hr-2', full_name: 'Ada' });
    await latest.stop();
    await earlier.stop();
    stage.earlier = await startEarlierVersion(folder, environmentOf(database, issuer));
    const old = callerAt(stage.earlier.url);

    expect((await old('GET', USERS + id)).body).not.toHaveProperty('external_id');
    const { body } = await old('POST', USERS, { email: freshAddress(), external_id: 'hr-2' });
    expect(body).not.toHaveProperty('external_id');
    expect((await old('PATCH', USERS + id, { external_id: 'other', is_active: false })).status).toBe(200);
    expect((await old('POST', USERS, { email })).status).toBe(409);
    if (version === '1.1.0') {
      const changes = (await old('GET', `${USERS}${id}/changes`)).body as { data: { changed: string[] } }[];
      expect(changes.map(({ data }) => data.changed)).toEqual([[], ['full_name'], ['is_active']]);
    }
    const again = await startService({}, { database, issuer });
    expect((await callerAt(again.url)('GET', USERS + id)).body).toMatchObject({
      external_id: 'hr-2',
      is_active: false,
    });
    expect((await callerAt(again.url)('GET', `${USERS}?external_id=hr-2`)).body).toMatchObject([{ id }]);
    await again.stop();
  });

  if (version === '1.0.0') return;

  test('created keys and list cursors that this version accepts', async () => {
    const { issuer, database, earlier, callerAt } = stage;
    const old = callerAt(earlier.url);
    const key = { headers: { 'idempotency-key': freshKey() } };
    const emails = [freshAddress(), freshAddress()] as const;
    const first = await old('POST', USERS, { email: emails[0] }, key);
    await old('POST', USERS, { email: emails[1] });
    const { link = '' } = (await old('GET', `${USERS}?limit=1`)).headers;
    const latest = await startService({}, { database, issuer });
    const young = callerAt(latest.url);

    for (const values of [{}, { external_id: null }])
      expect(await young('POST', USERS, { email: emails[0], ...values }, key)).toMatchObject({
        status: 201,
        headers: { 'idempotency-replayed': 'true' },
        body: first.body,
      });
    expect((await young('POST', USERS, { email: emails[0], external_id: 'x' }, key)).status).toBe(422);
    expect((await young('GET', /<(.+)>/.exec(link)?.[1] ?? '')).body).toMatchObject([{ email: emails[1] }]);
    await latest.stop();
  });
});
