import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { migrations } from '../../lib/migrations/index.ts';
import { type Migration, migrate } from '../../lib/migrations/runner.ts';
import type { SendSql } from '../../lib/postgres/index.ts';
import { administratorOf } from '../stage/administration.ts';
import {
  CHANGES,
  type ChangeBody,
  change,
  cursorIn,
  endOfFeed,
  nextOf,
  untilPolling,
} from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { freshAddress, refusal, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { timed } from '../stage/until.ts';

const service = serviceUnderTest();
const { call, createUser } = service;
const query = (...statements: readonly string[]) => service.database.query(...statements);
const get = (path: string) => call('GET', path);
const of = ({ id }: Pick<UserBody, 'id'>) => `/api/v1/users/${id}/changes`;
const expired = (path: string) => refusal('cursor_expired_error', path.replace(/\?.*/, ''));

/** The cursor of a position in the form of earlier versions. */
const earlierCursor = (position: number | string) => Buffer.from(`.${position}`).toString('base64url');

const head = async () => Number((await query('SELECT position FROM user_changes_head'))[0]?.position);

/** Removes everything after the position, as a restored backup or a failover does, as if it had never been numbered. */
const lose = (position: number) =>
  query(
    `DELETE FROM users USING user_changes WHERE id = user_id AND position > ${position}`,
    `DELETE FROM user_changes WHERE position > ${position}`,
    `UPDATE user_changes_head SET position = ${position}`,
  );

const administrator = administratorOf(service);

beforeAll(async () => {
  for (let count = 0; count < 5; count += 1) await createUser();
});

describe('after history was lost and as many changes were written again,', () => {
  test('a cursor in the lost part is 410 on every path, after any number of new changes', async () => {
    const ada = await createUser();
    const kept = await endOfFeed(call);
    const position = await head();
    const ofAda = nextOf(await get(of(ada)));
    for (let count = 0; count < 4; count += 1) await createUser();
    const inTheMiddle = nextOf(await get(`${kept}&limit=2`));
    const atTheEnd = await endOfFeed(call);
    const ofAdaAtTheEnd = nextOf(await get(ofAda));
    await lose(position);

    for (let written = 0; written < 8; written += 1) {
      expect(await get(inTheMiddle)).toEqual(expired(CHANGES));
      expect(await get(atTheEnd)).toEqual(expired(CHANGES));
      expect(await get(`${atTheEnd}&exclude_actor=x`)).toEqual(expired(CHANGES));
      expect(await get(`${inTheMiddle}&wait=1`)).toEqual(expired(CHANGES));
      expect(await get(ofAdaAtTheEnd)).toEqual(expired(of(ada)));
      expect((await get(ofAda)).status).toBe(200);
      expect((await get(kept)).body).toHaveLength(written);
      await createUser();
    }
  });

  test('no two changes have the same id', async () => {
    const end = await endOfFeed(call);
    const position = await head();
    await createUser();
    const lost = (await get(end)).body as ChangeBody[];
    await lose(position);
    await createUser();
    const written = (await get(end)).body as ChangeBody[];

    const positions = [...lost, ...written].map(({ id }) => id.split('-')[0]);
    expect(positions).toEqual([`${position + 1}`, `${position + 1}`]);
    expect(lost[0]?.id).not.toBe(written[0]?.id);
  });

  test('a reader that waits gets 410', async () => {
    await createUser();
    const end = await endOfFeed(call);
    const waiting = ['', '&exclude_actor=x', '&limit=1'].map((more) => get(`${end}&wait=20${more}`));
    await untilPolling(administrator);
    // In one statement, as a poll sees it after a failover: another change has the position of the lost one.
    await query(
      `UPDATE user_changes SET user_id = '${randomUUID()}', identity = identity # 1 WHERE position = (SELECT position FROM user_changes_head)`,
    );

    for (const page of await Promise.all(waiting)) expect(page).toEqual(expired(CHANGES));
  });

  test('a wait at the new end of the feed lasts its time: 200', async () => {
    const end = await endOfFeed(call);
    const position = await head();
    await query('UPDATE user_changes_head SET position = position + 5000');
    // A poll sees the head that is lost then.
    await get(`${await endOfFeed(call)}&wait=1`);
    await lose(position);
    const { value, milliseconds } = await timed(get(`${end}&wait=1`));

    expect([value.status, value.body, cursorIn(nextOf(value))]).toEqual([200, [], cursorIn(end)]);
    expect(milliseconds).toBeGreaterThan(900);
  });

  test('a change that is numbered again keeps its id and its cursors', async () => {
    const end = await endOfFeed(call);
    await createUser();
    const first = await get(end);
    await query(`
      WITH lost AS (DELETE FROM user_changes WHERE position = (SELECT position FROM user_changes_head) RETURNING *),
      back AS (UPDATE user_changes_head SET position = position - 1)
      INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time, identity)
      SELECT user_id, version, type, changed, actor, request_id, time, identity FROM lost
    `);

    expect((await get(nextOf(first))).body).toEqual([]);
    expect((await get(end)).body).toEqual(first.body);
  });
});

describe('the cursor of the last change that was deleted', () => {
  const deleteAll = async () => {
    await query("UPDATE user_changes SET time = now() - interval '31 days'");
    await service.cleanUp();
    expect(await query('SELECT FROM user_changes')).toEqual([]);
  };

  test('is valid, and a cursor before it is 410', async () => {
    const before = await endOfFeed(call);
    const ada = await createUser();
    const end = await endOfFeed(call);
    const ofAda = nextOf(await get(of(ada)));
    await deleteAll();

    expect((await get(end)).body).toEqual([]);
    expect(cursorIn(nextOf(await get(end)))).toBe(cursorIn(end));
    for (const path of [ofAda, of(ada)]) expect((await get(path)).body).toEqual([]);
    expect(await get(before)).toEqual(expired(CHANGES));
    const grace = await createUser();
    for (const next of [end, CHANGES])
      expect((await get(next)).body).toEqual([change('user.created', grace, 1)]);
    const earlier = `${CHANGES}?cursor=${earlierCursor((await head()) - 1)}`;
    expect((await get(earlier)).body).toEqual([change('user.created', grace, 1)]);
  });

  test('is 410 if another change had its position', async () => {
    const position = await head();
    await createUser();
    const end = await endOfFeed(call);
    await lose(position);
    await createUser();
    const other = await endOfFeed(call);
    await deleteAll();

    expect(await get(end)).toEqual(expired(CHANGES));
    expect(await get(`${end}&wait=1`)).toEqual(expired(CHANGES));
    expect((await get(other)).status).toBe(200);
  });

  test('is valid if an earlier version deleted it and stored only its position', async () => {
    await createUser();
    const end = await endOfFeed(call);
    await query(
      'DELETE FROM user_changes WHERE position <= (SELECT position FROM user_changes_head)',
      'UPDATE user_changes_head SET expired = position',
    );

    expect((await get(end)).body).toEqual([]);
    const ada = await createUser();
    expect((await get(end)).body).toEqual([change('user.created', ada, 1)]);
    expect((await get(nextOf(await get(end)))).body).toEqual([]);
  });
});

describe('a cursor in the form of earlier versions', () => {
  test('is accepted, and the link has the present form', async () => {
    const end = await endOfFeed(call);
    const position = await head();
    const atTheHead = await get(`${CHANGES}?cursor=${earlierCursor(position)}`);
    const waited = await get(`${CHANGES}?cursor=${earlierCursor(position)}&wait=1`);
    const ada = await createUser();
    const page = await get(`${CHANGES}?cursor=${earlierCursor(position)}`);

    for (const empty of [atTheHead, waited])
      expect([empty.status, empty.body, cursorIn(nextOf(empty))]).toEqual([200, [], cursorIn(end)]);
    expect(page.body).toEqual([change('user.created', ada, 1)]);
    expect(cursorIn(nextOf(page))).toBe(cursorIn(await endOfFeed(call)));
  });

  test('of one user is accepted, and the link has the present form', async () => {
    const ada = await createUser();
    await createUser();
    const text = `${ada.id.replaceAll('-', '')}.${(await head()) - 1}`;
    const page = await get(`${of(ada)}?cursor=${Buffer.from(text).toString('base64url')}`);

    expect(page.body).toEqual([change('user.created', ada, 1)]);
    expect(cursorIn(nextOf(page))).toBe(cursorIn(nextOf(await get(of(ada)))));
  });

  test('is 410 beyond the head and before the retained changes', async () => {
    await query('UPDATE user_changes_head SET expired = greatest(expired, 3)');

    expect(await get(`${CHANGES}?cursor=${earlierCursor((await head()) + 1)}`)).toEqual(expired(CHANGES));
    expect(await get(`${CHANGES}?cursor=${earlierCursor(2)}`)).toEqual(expired(CHANGES));
  });
});

test('a page that ends with an excluded change has a cursor that is valid after it', async () => {
  const end = await endOfFeed(call);
  const authorization = `Bearer ${await service.issuer.sign({ sub: 'busy' })}`;
  await call('POST', '/api/v1/users/', { email: freshAddress() }, { headers: { authorization } });
  const page = await get(`${end}&exclude_actor=busy`);

  expect(page.body).toEqual([]);
  expect(cursorIn(nextOf(page))).toBe(cursorIn(await endOfFeed(call)));
});

test('a cursor amid more excluded changes than a page covers is 410 after they were lost and written again', async () => {
  const end = `${await endOfFeed(call)}&exclude_actor=busy`;
  const position = await head();
  const write = () =>
    query(`WITH written AS (
      INSERT INTO user_changes (position, user_id, version, type, changed, actor, request_id, time)
      SELECT ${position} + n, gen_random_uuid(), 1, 1, 0, 'busy', '', now() FROM generate_series(1, 3000) AS n
    ) UPDATE user_changes_head SET position = ${position} + 3000`);
  await write();
  const page = await get(end);
  expect(page.body).toEqual([]);
  expect(cursorIn(nextOf(page))).not.toBe(cursorIn(await endOfFeed(call)));
  await lose(position);
  await write();

  expect(await get(nextOf(page))).toEqual(expired(CHANGES));
  expect((await get(end)).status).toBe(200);
});

test('while the migrations run, changes are 503 until the feed is complete, and nothing is 500', async () => {
  const { database, settings } = await emptyDatabase();
  const variables = { SVC_POSTGRES_MIGRATE: 'false' };
  const surroundings = { database, issuer: service.issuer };
  const options = { waitsUntilReady: false };
  const migrating = await forThisTest(startService, variables, surroundings, options);
  const statuses: string[] = [];
  const readFeeds = async () => {
    const paths = [CHANGES, of({ id: randomUUID() })];
    const responses = await Promise.all(paths.map((path) => migrating.call('GET', path)));
    statuses.push(responses.map(({ status }) => status).join());
  };
  const observe =
    (send: SendSql): SendSql =>
    (statement) =>
      send(statement).finally(readFeeds);
  const observed = Object.entries<Migration>(migrations).map(([name, run]): [string, Migration] => [
    name,
    (send, engine) => run(observe(send), engine),
  ]);
  await readFeeds();
  await migrate(settings, Object.fromEntries(observed));

  expect(statuses.filter((status, index) => status !== statuses[index - 1])).toEqual(['503,503', '200,404']);
});
