import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../stage/postgres.ts';
import { freshAddress, readResponse, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

test.each(['SQL_ASCII', 'LATIN1'])(
  'a database with the encoding %s is not migrated, everything is 503, and the cause is logged at the first failure',
  async (encoding) => {
    const reason = `the database has the encoding ${encoding}, and the service requires UTF8`;
    const [database, issuer] = await Promise.all([createDatabase({ encoding }), startIssuer()]);
    const service = await startService({}, { database, issuer }, { waitsUntilReady: false });
    onTestFinished(async () => {
      await service.stop();
      await issuer.stop();
      await database.drop();
    });
    const call = async (...request: Parameters<typeof service.call>) =>
      readResponse(await service.call(...request));
    const failure = await until('the migration has failed', async () =>
      (await service.events()).find(({ event }) => event === 'migration_failed'),
    );

    expect(failure.cause).toMatchObject({ message: reason });
    expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
    const fields = { email: freshAddress(), full_name: 'é' };
    expect(await call('POST', USERS, fields)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    const messages = (await service.events()).map(({ message }) => message);
    expect(messages).toContain(`not ready: ${reason}`);
    expect(messages).toContain(`no connection: ${reason}`);
    expect((await call('GET', '/health')).status).toBe(200);
  },
);
