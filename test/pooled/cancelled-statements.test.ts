import { expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { holdUsers, untilUnderWay } from '../stage/locks.ts';
import { refusal } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const USERS = '/api/v1/users/';

const service = serviceUnderTest(() => ({ SVC_POSTGRES_STATEMENT_TIMEOUT: '0.5' }));
const administrator = administratorOf(service);

test('a statement whose request reached its limit is cancelled behind PgBouncer, if the role checks its connections', async () => {
  await administrator.setForSessions('client_connection_check_interval', '500ms');
  const { release } = await holdUsers(service.database);
  try {
    const [response] = await Promise.all([service.call('GET', USERS), untilUnderWay(1, service.database)]);
    expect(response).toEqual(refusal('service_unavailable_error', USERS));

    // The lock is still held, and the role has no limit.
    await untilUnderWay(0, service.database, 3);
  } finally {
    await release();
  }
});
