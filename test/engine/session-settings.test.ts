import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { listChanges } from '../../handlers/users/changes.ts';
import { getUser } from '../../handlers/users/get.ts';
import { listUsers } from '../../handlers/users/list.ts';
import { updateUser } from '../../handlers/users/update.ts';
import type { Handler } from '../../lib/http/gateway.ts';
import { administratorOf } from '../stage/administration.ts';
import { isCitus } from '../stage/citus.ts';
import { startComposition } from '../stage/composition.ts';
import { type EventParticulars, eventOf } from '../stage/events.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import type { UserBody } from '../stage/responses.ts';
import { prepare } from '../stage/statements.ts';
import { until } from '../stage/until.ts';

/** A millisecond before and after the time of the user, which has all digits. */
const FILTERS = 'created_after=2001-02-03T04:05:06.788Z&created_before=2001-02-03T04:05:06.790Z';

// With one connection the settings of its session apply to every later statement.
const stage = forAllTests(() => startComposition({ SVC_POSTGRES_POOL_SIZE: '1' }));
const admin = administratorOf(stage);
let user: UserBody;
let usual: readonly string[];

beforeAll(async () => {
  user = await stage.createUser();
  await setTimes();
  usual = await responses();
});

async function set(name: string, value: string): Promise<void> {
  const setting = prepare(
    stage.service.database.statements,
    'SELECT',
    (given: { name: string; value: string }) => sql`select set_config(${given.name}, ${given.value}, false)`,
  );
  expect(await setting({ name, value })).toEqual([{ set_config: value }]);
}

/** A time of standard time and one of daylight saving time. */
const setTimes = () =>
  admin.query(`UPDATE users SET created_at = '2001-02-03T04:05:06.789Z',
    updated_at = '2001-07-08T09:10:11.120Z', version = 1, full_name = 'Ünïcødé "\\ 漢字 😀'`);

/** The bytes of the user, the list, the changes, and of an update of the name, without its time, and of a read after it. */
async function responses(): Promise<readonly string[]> {
  const get = () => bytesOf(getUser, 'getUser', { id: user.id });
  const read = [
    await get(),
    await bytesOf(listUsers, 'listUsers', { query: FILTERS }),
    await bytesOf(listChanges, 'listChanges', { query: 'limit=1' }),
  ];
  const updated = await bytesOf(updateUser, 'updateUser', { id: user.id, body: '{"full_name":"Ωmega"}' });
  const after = await get();
  await setTimes();
  const withoutTime = updated.replace(/"updated_at":"[^"]{24}"/, '"updated_at":""');
  return [...read, withoutTime, after === updated ? 'the same' : after];
}

async function bytesOf(
  endpoint: { bind(service: never): Handler },
  name: string,
  { query, ...particulars }: EventParticulars & { readonly query?: string },
): Promise<string> {
  const event = await eventOf(name, { token: await stage.issuer.sign(), ...particulars });
  const rawQueryString = query ?? event.rawQueryString;
  const { statusCode, body } = await endpoint.bind(stage.service as never)({ ...event, rawQueryString });
  return `${statusCode} ${body}`;
}

test('the compared responses contain the user, its times and its change', () => {
  expect(usual).toEqual([
    expect.stringContaining(
      '"created_at":"2001-02-03T04:05:06.789Z","updated_at":"2001-07-08T09:10:11.120Z"',
    ),
    expect.stringMatching(`^200 \\[.*"id":"${user.id}"`),
    expect.stringMatching(`^200 \\[.*"subject":"${user.id}"`),
    expect.stringMatching(/^200 .*Ωmega/),
    'the same',
  ]);
});

describe('responses are identical byte for byte', () => {
  const styles = ['ISO', 'German', 'SQL', 'Postgres'].flatMap((style) =>
    ['DMY', 'MDY', 'YMD'].map((order) => `${style}, ${order}`),
  );

  test.each(styles)('with DateStyle %s', async (style) => {
    await set('DateStyle', style);

    expect(await responses()).toEqual(usual);
  });

  test.each([
    ['bytea_output', 'escape'],
    ['extra_float_digits', '-15'],
    ['intervalstyle', 'sql_standard'],
  ])('if %s is %s', async (name, value) => {
    await set(name, value);

    expect(await responses()).toEqual(usual);
  });

  test('with a TimeZone of each offset, with and without daylight saving time', {
    timeout: 120_000,
  }, async () => {
    // Between its nodes, Citus sends times in the style of the session, and some names of zones in SQL are of two zones.
    await set('DateStyle', isCitus ? 'ISO, DMY' : 'SQL, DMY');
    const zones = await namesOf(
      'SELECT min(name) AS name FROM pg_timezone_names GROUP BY abbrev, utc_offset, is_dst',
    );

    expect(zones.length).toBeGreaterThan(50);
    expect(await differing(zones, (zone) => set('TimeZone', zone))).toEqual([]);
  });

  test('with each client encoding that PostgreSQL supports', { timeout: 120_000 }, async () => {
    const encodings = await namesOf(
      `SELECT DISTINCT pg_encoding_to_char(contoencoding) AS name FROM pg_conversion
       WHERE conforencoding = pg_char_to_encoding('UTF8')`,
    );

    expect(encodings.length).toBeGreaterThan(30);
    expect(await differing(encodings, giveToSessions)).toEqual([]);
  });
});

/** The values with which a response differs. */
async function differing(
  values: readonly string[],
  give: (value: string) => Promise<unknown>,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const value of values) {
    await give(value);
    if (!isDeepStrictEqual(await responses(), usual)) found.push(value);
  }
  return found;
}

/** A session cannot change its encoding later, so the database sets it for new sessions. */
async function giveToSessions(encoding: string): Promise<void> {
  await admin.setForSessions('client_encoding', encoding);
  await until('a session has begun', async () =>
    (await bytesOf(getUser, 'getUser', { id: user.id })).startsWith('200'),
  );
}

const namesOf = async (query: string) => (await admin.query(query)).map(({ name }) => String(name));
