import { expect, test } from 'vitest';
import { forThisTest } from '../stage/for-all-tests.ts';
import { freshAddress, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

test.each(['SQL_ASCII', 'LATIN1', 'EUC_JP', 'WIN1252'])(
  'a database with the encoding %s is not migrated, /ready and user operations are 503, and the cause is logged',
  async (encoding) => {
    const options = { encoding, waitsUntilReady: false };
    const { call, events } = await forThisTest(startService, {}, undefined, options);
    const messages = async () => (await events()).map(({ message }) => message);
    const reason = `the database has the encoding ${encoding}, and the service requires UTF8`;
    const failure = await until('the migration has failed', async () =>
      (await events()).find(({ event }) => event === 'migration_failed'),
    );
    const fields = { email: freshAddress(), full_name: 'é'.repeat(200) };

    expect(failure).toMatchObject({ cause: { message: reason } });
    expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
    expect(await messages()).toContain(`not ready: ${reason}`);
    expect(await call('POST', USERS, fields)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await messages()).toContain(`no connection: ${reason}`);
    expect((await call('GET', '/health')).status).toBe(200);
  },
);
