import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { ASKS_FOR_PASSWORD, AUTHENTICATION_OK, messagesThrough } from '../stage/postgres-messages.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { freshAddress, probe, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

let admin: Awaited<ReturnType<typeof administer>>;
const role = `role_${randomBytes(8).toString('hex')}`;
const database = `test_${randomBytes(8).toString('hex')}`;

// A role and a database for this service. PostgreSQL would accept an administrator in any case.
beforeAll(async () => {
  admin = await administer();
  await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  await admin.query(`CREATE DATABASE ${database} TEMPLATE template0 OWNER ${role}`);
  return async () => {
    await admin.query(`DROP DATABASE ${database} WITH (FORCE)`);
    await admin.query(`DROP ROLE ${role}`);
    await admin.stop();
  };
});

const { call } = serviceUnderTest(() => ({
  SVC_POSTGRES_DB: database,
  SVC_POSTGRES_USER: role,
  SVC_POSTGRES_PASSWORD: 'secret',
}));
const create = () => call('POST', USERS, { email: freshAddress() });

const untilServed = () =>
  until('a user is stored and /ready is 200', async () => {
    return (await create()).status === 201 && (await call('GET', '/ready')).status === 200;
  });

describe('a user operation is 503 while PostgreSQL', () => {
  test.each([
    ['is full', `ALTER ROLE ${role} CONNECTION LIMIT 0`, `ALTER ROLE ${role} CONNECTION LIMIT -1`],
    ['refuses the account', `ALTER ROLE ${role} NOLOGIN`, `ALTER ROLE ${role} LOGIN`],
    [
      'lacks the database',
      `ALTER DATABASE ${database} RENAME TO ${database}_away`,
      `ALTER DATABASE ${database}_away RENAME TO ${database}`,
    ],
  ])('%s, and so is /ready, and both recover by themselves', async (_case, refuse, undo) => {
    await untilServed();
    // A database can be renamed only without sessions. The service reconnects at the next request.
    await until('the sessions have ended', async () => {
      await admin.terminate(database);
      return (await admin.countSessions(database)) === 0;
    });
    await admin.query(refuse);

    expect(await call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await create()).toEqual(refusal('service_unavailable_error', USERS));
    expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
    expect(await call('GET', '/health')).toEqual(probe('healthy'));

    await admin.query(undo);
    await untilServed();
  });
});

describe('while PostgreSQL requests a password that cannot be read', () => {
  const proxy = forAllTests(() => startProxy(inject('postgres')));

  const service = serviceUnderTest(() => ({
    ...addressOf(proxy),
    SVC_POSTGRES_PASSWORD_FROM: '/nowhere/password',
  }));

  test('a user operation is 503, no connection stays open, and the service recovers by itself', async () => {
    // PostgreSQL waits for the password without another message.
    proxy.answersThrough(() =>
      messagesThrough((_type, message) =>
        message.equals(AUTHENTICATION_OK) ? ASKS_FOR_PASSWORD : undefined,
      ),
    );
    proxy.cutAll();
    const before = proxy.accepted;

    for (let count = 0; count < 20; count += 1)
      expect(await service.call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    expect(proxy.accepted - before).toBeGreaterThanOrEqual(20);
    await until('all are closed', () => proxy.open === 0);

    await proxy.pass();
    await until('users are listed', async () => (await service.call('GET', USERS)).status === 200);
  });
});
