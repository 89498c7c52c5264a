import { beforeAll, expect, inject, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { ERROR_RESPONSE, messagesThrough } from '../stage/postgres-messages.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { freshAddress, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const CALLERS = 30;

const proxy = forAllTests(() => startProxy(inject('postgres')));

// The messages of PostgreSQL if `lc_messages` is German. Field V stays the same, and pg does not read it.
beforeAll(() =>
  proxy.answersThrough(() =>
    messagesThrough((type, message) => (type === ERROR_RESPONSE ? translated(message) : message)),
  ),
);

function translated(message: Buffer): Buffer {
  const german = Buffer.from(message.toString('latin1').replace('SERROR\0', 'SFEHLER\0'), 'latin1');
  german.writeInt32BE(german.length - 1, 1);
  return german;
}

const service = serviceUnderTest(() => addressOf(proxy));
const { call, createUser } = service;
const administrator = administratorOf(service);

/** The sessions that meet a condition. */
const sessionsThat = (condition: string) =>
  administrator.query(`SELECT pid FROM pg_stat_activity WHERE ${condition} AND pid <> pg_backend_pid()
    AND datname = current_database() ORDER BY pid`);

test('in any language of the messages, an error belongs to one caller and ends no connection', async () => {
  const users = await Promise.all(Array.from({ length: CALLERS }, () => createUser()));
  const [{ id: culprit } = { id: '' }, { email } = { email: '' }, ...others] = users;
  const change = () =>
    Promise.all([
      ...others.map(({ id }) => call('PATCH', USERS + id, { full_name: freshAddress() })),
      call('PATCH', USERS + culprit, { email }),
    ]);
  // A session that looks for dead ones may end at any time.
  const sessions = await sessionsThat("query LIKE '%users%'");

  for (let count = 0; count < 10; count += 1) {
    const responses = await change();
    expect(responses.pop()).toEqual(refusal('conflict_error', USERS + culprit));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  }
  expect(sessions).not.toEqual([]);
  expect(await sessionsThat(`pid IN (${sessions.map(({ pid }) => pid)})`)).toEqual(sessions);
});
