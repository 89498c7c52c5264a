import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { CHANGES, type ChangeBody, change, endOfFeed, nextOf, readOn } from '../stage/changes.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser } = service;

const of = ({ id }: Pick<UserBody, 'id'>) => `${USERS}${id}/changes`;

/** Changes as committed writers leave them: `count` of one actor, and the last one of a user with that id. */
async function leaveUnnumbered(count: number, last: string, actor = 'other') {
  await service.database.query(`
    INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
    SELECT CASE n WHEN ${count} THEN '${last}'::uuid ELSE gen_random_uuid() END,
      1, 1, 0, CASE n WHEN ${count} THEN 'the last' ELSE '${actor}' END, '', now()
    FROM generate_series(1, ${count}) AS n ORDER BY n
  `);
}

describe('a writer that commits late', () => {
  /** A transaction that writes a user whose name begins with "late" commits when this lock is free. */
  const LOCK = 4711;

  beforeAll(async () => {
    await service.database.query(`
      CREATE FUNCTION commit_late() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${LOCK}); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON users DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (new.full_name LIKE 'late%') EXECUTE FUNCTION commit_late();
    `);
  });

  test('is not skipped, and holds back only changes of the same user, whose versions stay in order', async () => {
    // The first change gives the feed its end.
    await createUser();
    const end = await endOfFeed(call);
    const ada = await createUser();
    const lock = await hold(service.database, `SELECT pg_advisory_xact_lock(${LOCK})`);
    const second = call('PATCH', USERS + ada.id, { full_name: 'late' });
    await untilUnderWay(1, service.database, 10, 100);
    // Waiting transactions take turns. The order of the two is not specified.
    const third = call('PATCH', USERS + ada.id, { full_name: 'later' });
    await untilUnderWay(2, service.database);
    const grace = await createUser();

    const before = await call('GET', end);
    expect(before.body).toEqual([change('user.created', ada, 1), change('user.created', grace, 1)]);
    await lock.release();
    expect([(await second).status, (await third).status]).toEqual([200, 200]);

    expect((await call('GET', nextOf(before))).body).toEqual([
      change('user.updated', ada, 2, ['full_name']),
      change('user.updated', ada, 3, ['full_name']),
    ]);
  });
});

test('readers beside writers get every change once, in the order of positions and of versions', async () => {
  const end = await endOfFeed(call);
  let isWriting = true;
  const writer = async () => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await createUser();
      await Promise.all([call('PATCH', USERS + id, { full_name: 'a' }), call('PATCH', USERS + id, {})]);
      if (round % 2 === 0) await call('DELETE', USERS + id);
    }
  };
  const reader = async (limit: number) => {
    const seen: ChangeBody[] = [];
    for (let next = `${end}&limit=${limit}`, isLast = false; ; ) {
      const page = await call('GET', next);
      const found = page.body as readonly ChangeBody[];
      seen.push(...found);
      next = nextOf(page);
      if (found.length === 0 && isLast) return seen;
      isLast = !isWriting && found.length === 0;
    }
  };
  const readers = [1, 3, 7, 100].map(reader);
  await Promise.all(Array.from({ length: 6 }, writer));
  isWriting = false;
  const [first = [], ...others] = await Promise.all(readers);

  for (const seen of others) expect(seen).toEqual(first);
  expect(first).toHaveLength(6 * (10 * 3 + 5));
  expect(new Set(first.map(({ id }) => id)).size).toBe(first.length);
  const versions = new Map<string, number>();
  for (const { subject, data } of first) {
    expect(data.version).toBe((versions.get(subject) ?? 0) + 1);
    versions.set(subject, data.version);
  }
});

describe('if more changes wait for a position than one step numbers,', () => {
  test('concurrent readers all get the last change', async () => {
    const id = randomUUID();
    await leaveUnnumbered(12_000, id);
    const pages = await Promise.all(Array.from({ length: 8 }, () => call('GET', of({ id }))));

    for (const page of pages) expect(page.body).toEqual([change('user.created', { id }, 1)]);
  });

  test('cursor=now is after the last change for concurrent requests', async () => {
    await leaveUnnumbered(12_000, randomUUID());
    const ends = await Promise.all(Array.from({ length: 8 }, () => endOfFeed(call)));

    expect(new Set(ends).size).toBe(1);
    expect((await call('GET', `${ends[0]}`)).body).toEqual([]);
  });
});

test('pages may be empty if exclude_actor leaves out much, and their links lead to later pages', async () => {
  const end = await endOfFeed(call);
  const id = randomUUID();
  await leaveUnnumbered(7000, id, 'busy');

  let [page, pages] = [await call('GET', `${end}&exclude_actor=busy&limit=10`), 1];
  for (; (page.body as unknown[]).length === 0; pages += 1) page = await call('GET', nextOf(page));
  expect(page.body).toEqual([change('user.created', { id }, 1)]);
  expect(pages).toBeGreaterThan(1);
  expect(pages).toBeLessThan(10);
});

describe('with serializable as the default isolation, and a pooler that takes no session settings,', () => {
  const strict = serviceUnderTest(() => ({ SVC_POSTGRES_POOLER: 'transaction' }));

  const strictAdministrator = administratorOf(strict);

  beforeAll(async () => {
    await strictAdministrator.setForSessions('default_transaction_isolation', 'serializable');
    await strict.call('GET', CHANGES);
  });

  test('concurrent reads and writes all succeed', async () => {
    const end = await endOfFeed(strict.call);
    const made = Array.from({ length: 5 }, async () => {
      const ids: string[] = [];
      for (let round = 0; round < 8; round += 1) ids.push((await strict.createUser()).id);
      return ids;
    });
    const read = Array.from({ length: 5 }, async () => {
      for (let round = 0; round < 8; round += 1) expect((await strict.call('GET', end)).status).toBe(200);
    });
    const ids = (await Promise.all(made)).flat();
    await Promise.all(read);

    const { changes } = await readOn(strict.call, end);
    expect(changes.map(({ subject }) => subject).sort()).toEqual(ids.sort());
  });
});
