import { expect, test } from 'vitest';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { runMigrations } from '../../lib/migrations/index.ts';
import { accept } from '../accept/accept.ts';
import { startFunctions } from '../parity/ways.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startHttpFront } from '../stage/http-front.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { environmentOf } from '../stage/service.ts';

test('the functions behind API Gateway pass the acceptance checks', { timeout: 90_000 }, async () => {
  const audience = 'user-management-service';
  const { database, settings } = await emptyDatabase();
  await runMigrations(settings);
  const issuer = await forThisTest(startTokenIssuer, { audience, port: 0 });
  const functions = await forThisTest(startFunctions, {
    ...environmentOf(database, { ...issuer, audience }),
    SVC_OAUTH_ROLES_CLAIM: 'aud',
  });
  const front = await forThisTest(startHttpFront, functions.send);

  const { code, report } = await accept([front.url, '--profile', 'full'], {
    ACCEPT_TOKEN_URL: issuer.tokenEndpoint,
    ACCEPT_CLIENT_ID: 'acceptance',
  });

  expect(report).toContain('The deployment holds.');
  expect(code).toBe(0);
});
