import { expect, test } from 'vitest';
import { holdUsers, untilUnderWay } from '../stage/locks.ts';
import { refusal } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const USERS = '/api/v1/users/';

const service = serviceUnderTest(() => ({ SVC_POSTGRES_STATEMENT_TIMEOUT: '0.5' }));

test('a statement whose request reached its limit is cancelled behind PgBouncer, if the role checks its connections', async () => {
  const { release } = await holdUsers(service.database);
  try {
    const [response] = await Promise.all([service.call('GET', USERS), untilUnderWay(1, service.database)]);
    expect(response).toEqual(refusal('service_unavailable_error', USERS));

    // The lock is still held, and the limit of the role is twenty seconds.
    await untilUnderWay(0, service.database, 3);
  } finally {
    await release();
  }
});
