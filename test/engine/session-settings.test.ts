import { beforeAll, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { CHANGES } from '../stage/changes.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const service = serviceUnderTest();
const admin = administratorOf(service);

const FULL_NAME = 'Ünïcødé "\\ 漢字 😀';
const TIMES = "created_at = '2001-02-03T04:05:06.789Z', updated_at = '2001-07-08T09:10:11.120Z'";
/** Half a second before and after the time of the user. */
const FILTERS = 'created_after=2001-02-03T04:05:06.289Z&created_before=2001-02-03T04:05:07.289Z';

/** The bytes of the user, a list and the changes, as soon as the service has a session. */
async function readAll(): Promise<readonly string[]> {
  const paths = [USERS + id, `${USERS}?${FILTERS}`, `${CHANGES}?limit=1`];
  await until('a read is 200', async () => (await service.call('GET', USERS)).status === 200);
  return Promise.all(
    paths.map(async (path) => {
      const authorization = `Bearer ${await service.issuer.sign()}`;
      return (await fetch(service.url + path, { headers: { authorization } })).text();
    }),
  );
}

let id: string;
let usual: readonly string[];

beforeAll(async () => {
  ({ id } = await service.createUser({ full_name: FULL_NAME }));
  await admin.query(`UPDATE users SET ${TIMES}`);
  usual = await readAll();
});

test('the compared responses contain the user', () => {
  expect(usual[0]).toContain(`"full_name":${JSON.stringify(FULL_NAME)}`);
  expect(usual.map((text) => text.includes(id))).toEqual([true, true, true]);
});

// test/users/timestamps.test.ts has the settings of times.
test.each([
  ['bytea_output', 'escape'],
  ['client_encoding', 'LATIN1'],
  ['client_encoding', 'SJIS'],
  ['client_encoding', 'SQL_ASCII'],
])('responses are identical byte for byte if %s of the database is %s', async (name, value) => {
  await admin.setForSessions(name, value, { isOnly: true });

  expect(await readAll()).toEqual(usual);
});
