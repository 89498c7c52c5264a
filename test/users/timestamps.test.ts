import { describe, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { success, USERS, type UserBody } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const service = serviceUnderTest();
const { call } = service;
const admin = administratorOf(service);

/** The settings of PostgreSQL for times. A role or a database gives them to every session. */
const settings = [
  ['datestyle', 'German'],
  ['datestyle', 'Postgres, MDY'],
  ['timezone', 'Asia/Kathmandu'],
  ['timezone', '<+0030>-00:30'],
  ['intervalstyle', 'sql_standard'],
] as const;

describe('timestamps are UTC with milliseconds and Z', () => {
  test.each(settings)('if %s is %s', async (name, value) => {
    await admin.setForSessions(name, value, { isOnly: true });
    const [set] = await inDatabase(service.database, `SHOW ${name}`);
    const created = await createUser();
    // A time of standard time and one of daylight saving time, each with all digits.
    const user = {
      ...created,
      created_at: '2001-02-03T04:05:06.789Z',
      updated_at: '2001-07-08T09:10:11.120Z',
    };
    await admin.query(
      `UPDATE users SET created_at = '${user.created_at}', updated_at = '${user.updated_at}' WHERE id = '${user.id}'`,
    );

    expect(String(Object.values(set ?? {}))).toContain(value);
    const etag = '"1"';
    expect(await call('GET', USERS + user.id)).toEqual(success(200, user, { etag }));
    const between = 'created_after=2001-02-03T04:05:06.788Z&created_before=2001-02-03T04:05:06.790Z';
    expect((await call('GET', `${USERS}?${between}`)).body).toContainEqual(user);
    const { body } = await call('PATCH', USERS + user.id, {});
    expect(body).toEqual({ ...user, updated_at: await timeOfUpdate(user) });
  });
});

/** A user. The first tries may fail because the connections were closed. */
function createUser(): Promise<UserBody> {
  return until('a user is created', async () => {
    const { id } = await service.createUser();
    return id !== undefined && ((await call('GET', USERS + id)).body as UserBody);
  });
}

/** The text that PostgreSQL itself writes. */
async function timeOfUpdate({ id }: UserBody): Promise<unknown> {
  const [row] = await admin.query(
    `SELECT to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS text FROM users WHERE id = '${id}'`,
  );
  return row?.text;
}
