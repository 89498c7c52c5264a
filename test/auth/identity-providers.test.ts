import { expect, test } from 'vitest';
import { callerOf } from '../stage/caller.ts';
import { CHANGES, type ChangeBody } from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { freshKey } from '../stage/keyed.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { gateFor } from './gate.ts';

// Tokens in the form of the providers' documentation, signed by the tests' own issuer. What they need and lack is in
// infra/docs/identity-providers.md.

test('Cognito has no aud, and scopes that are not roles; the documented trigger adds both', async () => {
  const { issuer, expectAccepted, expectForbidden, expectRefused } = await gateFor('roles');
  const scopes = ['user-management-service/users.read', 'billing/users.write'];
  const claims = { sub: '1example', client_id: '1example', token_use: 'access', scope: scopes.join(' ') };

  await expectRefused({ ...claims, aud: undefined });
  await expectForbidden(claims);
  const added = await triggered({ request: { scopes }, callerContext: { clientId: issuer.audience } });
  expect(added).toEqual({ aud: issuer.audience, roles: ['users.read'] });
  await expectAccepted({ ...claims, ...added });
});

test('instances with a second issuer serve the same users, and callers with one sub share actor and keys', async () => {
  const first = await forThisTest(startService);
  const issuer = await forThisTest(startIssuer);
  const second = await forThisTest(startService, {}, { database: first.database, issuer });
  const key = { headers: { 'idempotency-key': freshKey() } };
  const [values, others] = [{ email: freshAddress() }, { email: freshAddress() }];
  const created = await first.call('POST', USERS, values, key);
  const replayed = await second.call('POST', USERS, values, key);
  const user = created.body as UserBody;
  await second.call('PATCH', USERS + user.id, { full_name: 'Ada' });
  const changes = (await first.call('GET', CHANGES)).body as ChangeBody[];
  const crossed = [
    await callerOf(first.url, issuer)('GET', USERS),
    await callerOf(second.url, first.issuer)('GET', USERS),
  ];

  expect(created.status).toBe(201);
  expect(replayed).toMatchObject({ status: 201, headers: { 'idempotency-replayed': 'true' }, body: user });
  expect((await second.call('POST', USERS, others, key)).status).toBe(422);
  expect((await second.call('POST', USERS, others)).status).toBe(201);
  expect(changes.map(({ type, data }) => `${type} by ${data.actor}`)).toEqual([
    'user.created by svc-test',
    'user.updated by svc-test',
  ]);
  expect(crossed.map(({ status }) => status)).toEqual([401, 401]);
});

/** The claims that the documented trigger adds to an access token. */
async function triggered(event: object): Promise<Record<string, unknown>> {
  const program = blockOf('infra/docs/identity-providers.md', 'Amazon Cognito');
  const { handler } = await import(`data:text/javascript,${encodeURIComponent(program)}`);
  const { response } = await handler(event);
  return response.claimsAndScopeOverrideDetails.accessTokenGeneration.claimsToAddOrOverride;
}
