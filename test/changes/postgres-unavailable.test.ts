import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { CHANGES, change, endOfFeed, nextOf, untilPolling } from '../stage/changes.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { addressOf } from '../stage/proxy.ts';
import { freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const postgres = forAllTests(() => startDisposablePostgres());

const service = serviceUnderTest(() => ({
  ...addressOf(postgres),
  SVC_POSTGRES_USER: postgres.user,
  SVC_POSTGRES_PASSWORD: postgres.password,
  SVC_POSTGRES_DB: postgres.database,
  SVC_POSTGRES_STATEMENT_TIMEOUT: '1',
}));
const { call, createUser } = service;

const untilReady = () => until('/ready is 200', async () => (await fetch(`${service.url}/ready`)).ok);

describe('while PostgreSQL is unavailable,', () => {
  test.each([
    ['killed', () => postgres.kill(), () => postgres.start()],
    ['frozen', () => postgres.freeze(), async () => postgres.thaw()],
  ])(
    'because it is %s, waiting requests continue to wait, and return the changes after it recovers',
    async (_case, depart, comeBack) => {
      const end = await endOfFeed(call);
      const waiting = Array.from({ length: 20 }, () => call('GET', `${end}&wait=20`));
      await untilPolling(postgres);
      await depart();
      expect((await call('GET', `${CHANGES}?limit=1`)).status).toBe(503);
      await comeBack();
      await untilReady();
      const user = await until('a user is created', async () => {
        const { status, body } = await call('POST', USERS, { email: freshAddress() });
        return status === 201 && (body as UserBody);
      });

      for (const page of await Promise.all(waiting))
        expect([page.status, page.body]).toEqual([200, [change('user.created', user, 1)]]);
    },
  );

  test('a wait that began after the poll ends on time, with an empty page and the same cursor', async () => {
    const end = `${await endOfFeed(call)}&limit=100`;
    const earlier = call('GET', `${end}&wait=20`);
    await untilPolling(postgres);
    await postgres.freeze();
    await sleep(300);
    const begun = performance.now();
    const page = await call('GET', `${end}&wait=1`);
    const took = performance.now() - begun;
    postgres.thaw();
    await untilReady();

    expect([page.status, page.body, nextOf(page)]).toEqual([200, [], `${end}&wait=1`]);
    expect(took).toBeLessThan(3500);
    await call('POST', USERS, { email: freshAddress() });
    await earlier;
  });
});

describe('while PostgreSQL accepts no writes,', () => {
  const takeWrites = (isOn: boolean) =>
    postgres.query([
      `ALTER SYSTEM SET default_transaction_read_only = ${isOn ? 'off' : 'on'}`,
      'SELECT pg_reload_conf()',
    ]);
  /** Number of failed statements. A session that stays open reports it up to ten seconds late. */
  const failed = async () => {
    const statement =
      'SELECT xact_rollback::int AS count FROM pg_stat_database WHERE datname = current_database()';
    return (await postgres.query(statement))[0]?.count;
  };

  afterEach(() => takeWrites(true));

  test('changes with a position are returned, the others later, and no statement fails', async () => {
    const created = async () => (await call('POST', USERS, { email: freshAddress() })).status;
    await until('it takes writes', async () => (await created()) === 201);
    const end = await endOfFeed(call);
    const ada = await createUser();
    const first = await call('GET', end);
    const grace = await createUser();
    const accepted = Number(await failed());
    await takeWrites(false);
    await until('it takes no writes', async () => (await created()) === 503);
    const refused = performance.now();
    // The service refuses it without a statement if a session has reported before that it accepts no writes.
    const isCounted = async () => Number(await failed()) > accepted || performance.now() - refused > 12_000;
    await until('the refused write is counted, if it was sent', isCounted, { seconds: 15 });
    const before = await untilUnchanged(failed);

    for (let round = 0; round < 5; round += 1) {
      const page = await call('GET', end);
      expect([page.status, page.body]).toEqual([200, [change('user.created', ada, 1)]]);
      expect(nextOf(page)).toBe(nextOf(first));
      expect((await call('GET', nextOf(page))).body).toEqual([]);
      expect((await call('GET', `${USERS}${ada.id}/changes`)).body).toEqual([change('user.created', ada, 1)]);
      // This user has a change, though without a position.
      expect((await call('GET', `${USERS}${grace.id}/changes`)).body).toEqual([]);
      expect((await call('GET', `${CHANGES}?cursor=now&limit=0`)).status).toBe(200);
      expect((await call('GET', `${nextOf(page)}&wait=1`)).body).toEqual([]);
    }
    expect(await untilUnchanged(failed)).toBe(before);

    const waiting = call('GET', `${nextOf(first)}&wait=20`);
    await untilPolling(postgres);
    await takeWrites(true);
    expect((await waiting).body).toEqual([change('user.created', grace, 1)]);
  });
});

/** The result of `ask`, when it has been the same for two seconds. */
function untilUnchanged<Value>(ask: () => Promise<Value>): Promise<Value> {
  return until('nothing new', async () => {
    const before = await ask();
    await sleep(2000);
    return (await ask()) === before && before;
  });
}
