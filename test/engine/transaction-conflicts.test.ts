import { beforeAll, describe, expect, test } from 'vitest';
import { isDistributed } from '../stage/distributed.ts';
import { isPooled } from '../stage/pooled.ts';
import { freshAddress, refusal, success, USERS, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { BUSY_S } from '../stage/until.ts';

describe('a statement', () => {
  const service = serviceUnderTest(() => ({ SVC_POSTGRES_STATEMENT_TIMEOUT: '1.5' }));
  const create = (email: string) => service.call('POST', USERS, { email });

  /** From now on the first `count` tries to create a user end in `sqlState`. */
  const failCreates = (sqlState: string, count: number) =>
    service.database.query(
      'CREATE SEQUENCE IF NOT EXISTS tries',
      'ALTER SEQUENCE tries RESTART',
      `CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('tries') <= ${count} THEN RAISE EXCEPTION 'a fault' USING ERRCODE = '${sqlState}'; END IF;
         RETURN new;
       END $$`,
      'CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail()',
    );

  async function countTries(): Promise<number> {
    const [row] = await service.database.query('SELECT last_value::int AS count FROM tries');
    return Number(row?.count);
  }

  test('with an unknown outcome in PostgreSQL is 503, and is not sent again', async () => {
    await failCreates('40003', 1);

    expect(await create(freshAddress())).toEqual(refusal('service_unavailable_error', USERS));
    expect(await countTries()).toBe(1);
  });

  test.each([['40001'], ['40P01']])(
    'that met a conflict is sent again until it succeeds: %s',
    async (code) => {
      await failCreates(code, 6);
      const email = freshAddress();

      const { status, body } = await create(email);
      expect([status, body]).toEqual([201, user({ email })]);
      expect(await countTries()).toBe(7);
    },
  );

  test("with a lasting conflict is 503 when the request's time limit is reached", async () => {
    await failCreates('40001', 1_000_000);
    const start = performance.now();

    expect(await create(freshAddress())).toEqual(refusal('service_unavailable_error', USERS));
    expect(performance.now() - start).toBeLessThan(1750 + 1000 * BUSY_S);
    // With pauses that grow to a fifth of a second.
    expect(await countTries()).toBeGreaterThan(4);
    expect(await countTries()).toBeLessThan(150);
  });
});

describe('if all transactions are serializable by default,', () => {
  const direct = serviceUnderTest();
  // As behind a pooler, which accepts no session settings.
  const pooled = serviceUnderTest(() => ({
    SVC_POSTGRES_POOLER: 'transaction',
    SVC_POSTGRES_POOL_SIZE: '32',
  }));

  beforeAll(async () => {
    for (const service of [direct, pooled]) {
      // All sessions, because a new session of a pooler does not have the name of the service yet.
      await service.database.query(
        `ALTER DATABASE ${service.database.name} SET default_transaction_isolation = serializable`,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
    }
  });

  test('the service requests READ COMMITTED, if engine and pooler support it', async () => {
    await direct.database.query(
      `CREATE OR REPLACE FUNCTION note_isolation() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         new.full_name = current_setting('transaction_isolation'); RETURN new;
       END $$`,
      'CREATE OR REPLACE TRIGGER note_isolation BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION note_isolation()',
    );
    const given = await direct.createUser();
    const response = await direct.call('PATCH', USERS + given.id, {});

    const updated_at = expect.any(String);
    const full_name = isDistributed || isPooled ? 'serializable' : 'read committed';
    expect(response).toEqual(success(200, { ...given, full_name, updated_at }, { etag: '"2"' }));
  });

  test.each([
    ['one row', 1, 0.02],
    ['1,000 rows', 1000, 0],
  ])('32 writers on %s are served, also behind a pooler', async (_rows, count, mostRefused) => {
    const users = await pooled.database.query(`
      INSERT INTO users (id, email) SELECT gen_random_uuid(), gen_random_uuid() || '@example.com'
      FROM generate_series(1, ${count}) RETURNING id
    `);
    let turn = 0;
    const statuses: number[] = [];
    const write = async () => {
      for (let round = 0; round < 20; round += 1) {
        turn += 7;
        const path = USERS + users[turn % count]?.id;
        statuses.push((await pooled.call('PATCH', path, { full_name: `${turn}` })).status);
      }
    };
    await Promise.all(Array.from({ length: 32 }, write));

    const refused = statuses.filter((status) => status !== 200);
    expect(statuses).toHaveLength(640);
    expect(refused.length).toBeLessThanOrEqual(640 * mostRefused);
    expect(refused).toEqual(refused.map(() => 503));
  });
});
