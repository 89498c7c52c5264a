import { expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { accept } from '../accept/accept.ts';
import { startFunctions } from '../parity/ways.ts';
import { startHttpFront } from '../stage/http-front.ts';
import { createDatabase } from '../stage/postgres.ts';
import { environmentOf } from '../stage/service.ts';

test('the functions behind API Gateway pass the acceptance checks', { timeout: 90_000 }, async () => {
  const audience = 'user-management-service';
  const [database, port] = await Promise.all([createDatabase(), freePort()]);
  const issuer = await startTokenIssuer({ audience, port });
  const environment = {
    ...environmentOf(database, { ...issuer, audience }),
    SVC_OAUTH_ROLES_CLAIM: 'aud',
  };
  await runMigrations(readSettings(environment).postgres);
  const functions = await startFunctions(environment);
  const front = await startHttpFront(functions.send);

  const { code, report } = await accept([front.url, '--profile', 'full'], {
    ACCEPT_TOKEN_URL: issuer.tokenEndpoint,
    ACCEPT_CLIENT_ID: 'acceptance',
  });
  await Promise.all([front.stop(), functions.stop(), issuer.stop()]);
  await database.drop();

  expect(report).toContain('The deployment holds.');
  expect(code).toBe(0);
});
