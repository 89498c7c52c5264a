import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { administer } from '../stage/administration.ts';
import { BATCH, USERS, type UserBody } from '../stage/responses.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { repeat } from '../stage/until.ts';
import { stageOfVersion, startEarlierVersion } from './earlier-version.ts';
import { watchLocks } from './writers.ts';

const stage = stageOfVersion('1.1.0');
const MIGRATE = join(import.meta.dirname, '../../host/commands/migrate.ts');
const COUNT = Number(process.env.USERS ?? 200_000);

type Call = ReturnType<typeof stage.callerAt>;

/** Sends requests whose responses depend on the index of emails, and collects unexpected ones. */
function startCallers(callers: readonly Call[]) {
  const wrong: string[] = [];
  let requests = 0;
  async function expectStatus(call: Call, expected: string, ...request: Parameters<Call>) {
    const response = await call(...request).catch((fault: Error) => ({
      status: fault.message,
      body: undefined,
    }));
    const { errors = [] } = (response.body ?? {}) as { errors?: { pointer: string }[] };
    const seen = [response.status, ...errors.map(({ pointer }) => pointer)].join(' ');
    requests += 1;
    if (seen !== expected) wrong.push(`${request.slice(0, 2).join(' ')}: ${seen}`);
    return response.body as UserBody;
  }
  async function round(call: Call): Promise<void> {
    const email = `Ada.${randomUUID()}@Example.com`;
    const again = email.toUpperCase();
    const { id } = await expectStatus(call, '201', 'POST', USERS, { email });
    const other = await expectStatus(call, '201', 'POST', USERS, { email: `${randomUUID()}@É.example` });
    await expectStatus(call, '409', 'POST', USERS, { email: again });
    await expectStatus(call, '409', 'PATCH', USERS + other.id, { email: again });
    const items = [{ email: `${randomUUID()}@x.example` }, { email: again }];
    await expectStatus(call, '409 #/items/1/email', 'POST', BATCH, { items });
    await expectStatus(call, '200', 'POST', BATCH, { items, mode: 'partial' });
    const finds = Array.from({ length: 8 }, () => call('GET', `${USERS}?email=${encodeURIComponent(again)}`));
    for (const { status, body } of await Promise.all(finds))
      if (status !== 200 || (body as UserBody[])[0]?.id !== id)
        wrong.push(`lookup: ${status} ${JSON.stringify(body)}`);
    await expectStatus(call, '200', 'PATCH', USERS + id, { email: again });
    await expectStatus(call, '204', 'DELETE', USERS + id);
  }
  const stops = callers.map((call) => repeat(() => round(call)));
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
    return { wrong, requests };
  };
}

test(`${COUNT} users get the new index of emails while runs are killed, rolled out and rolled back, and no request is refused`, async () => {
  const { folder, issuer, database, earlier, callerAt } = stage;
  const environment = environmentOf(database, issuer);
  const second = await startEarlierVersion(folder, environment);
  const administrator = await administer(database.name);
  await administrator.query(`
    INSERT INTO users (id, email) SELECT gen_random_uuid(), n || '@Million.example' FROM generate_series(1, ${COUNT}) AS n`);
  const old = startCallers([earlier.url, second.url, second.url].map(callerAt));
  const locks = await watchLocks(database);

  const begun = performance.now();
  for (const pause of [400, 700, 1000, 1300, 1600]) {
    const runs = [1, 2, 3].map(() =>
      spawn(process.execPath, [MIGRATE], { env: environment, stdio: 'ignore' }),
    );
    const ends = runs.map((run) => once(run, 'exit'));
    await sleep(pause);
    for (const run of runs) run.kill('SIGKILL');
    await Promise.all(ends);
  }
  await Promise.all([1, 2, 3, 4].map(() => runMigrations(readSettings(environment).postgres)));
  const latest = await Promise.all([1, 2].map(() => startService({}, { database, issuer })));
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const young = startCallers(latest.map(({ url }) => callerAt(url)));
  await sleep(2000);
  const oldResults = [await old()];
  // The rollback.
  const back = startCallers([callerAt(earlier.url)]);
  await sleep(1000);
  const youngResults = [await young()];
  await Promise.all(latest.map(({ stop }) => stop()));
  const third = await startEarlierVersion(folder, environment);
  const alone = startCallers([callerAt(third.url)]);
  await sleep(1000);
  oldResults.push(await back(), await alone());
  await Promise.all([second.stop(), third.stop()]);

  const names = await administrator.query(
    "SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indisvalid AND relname ~ 'users_email' ORDER BY 1",
  );
  const plan = await administrator.query(
    "EXPLAIN SELECT FROM users WHERE lower(upper(email)) = lower(upper('1@million.example')) ORDER BY created_at, id LIMIT 101",
  );
  await administrator.end();
  process.stdout.write(
    `${COUNT} users: ${seconds} s to the new index, beside ${oldResults.map(({ requests }) => requests)} requests of 1.1.0 ` +
      `and ${youngResults.map(({ requests }) => requests)} of this version\n`,
  );
  for (const { wrong, requests } of [...oldResults, ...youngResults]) {
    expect(wrong).toEqual([]);
    expect(requests).toBeGreaterThan(0);
  }
  expect(await locks.stop()).toBeLessThan(1);
  expect(names).toEqual([{ relname: 'users_email_key' }, { relname: 'users_email_unicode_idx' }]);
  expect(JSON.stringify(plan)).toContain('users_email_unicode_idx');
});
