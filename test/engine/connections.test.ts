import { expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { freshKey } from '../stage/keyed.ts';
import { freshAddress, readResponse, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const service = serviceUnderTest();
const admin = administratorOf(service);

test('requests are 401 without a valid token and 403 without the role, also with invalid bodies, and take no database connection', async () => {
  const foreign = await service.issuer.sign({ aud: 'another-service' });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${foreign}` };
  const reader = { authorization: `Bearer ${await service.issuer.tokenFor('users.read')}` };
  const before = await admin.countSessions();

  const responses = await times(300, async (index) => {
    const init = { method: 'POST', body: '{"email": \u0000'.repeat(index), headers };
    return readResponse(await fetch(`${service.url}${USERS}`, init));
  });

  expect(responses).toEqual(responses.map(() => refusal('unauthorized_error', USERS)));
  expect((await service.call('POST', USERS, {}, { headers: reader })).status).toBe(403);
  expect(await admin.countSessions()).toBe(before);
  // A valid token takes one, which proves the count.
  await service.call('GET', USERS);
  expect(await admin.countSessions()).toBe(before + 1);
});

test('the pool has at most SVC_POSTGRES_POOL_SIZE connections, and readiness has one', async () => {
  // Requests of each executor of statements.
  const send = () => [
    service.call('GET', USERS),
    service.call('POST', USERS, { email: freshAddress() }),
    service.call('POST', USERS, { email: freshAddress() }, { headers: { 'idempotency-key': freshKey() } }),
  ];
  for (let round = 0; round < 5; round += 1) await Promise.all(Array.from({ length: 30 }, send).flat());
  await times(20, () => fetch(`${service.url}/ready`));

  // For a moment one more asks whether PostgreSQL works on a late statement.
  await expect.poll(() => admin.countSessions()).toBeLessThanOrEqual(11);
});
