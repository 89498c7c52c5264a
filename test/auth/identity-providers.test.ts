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

/** The claims that Keycloak 26 writes for a service account. The audience comes from a client role or a mapper. */
const keycloak = {
  sub: 'fdd939f4-bcd1-4e26-aa97-d236cd2ada8e',
  typ: 'Bearer',
  azp: 'billing',
  realm_access: { roles: ['default-roles-example', 'offline_access', 'users.read', 'uma_authorization'] },
  resource_access: {
    'user-management-service': { roles: ['users.read'] },
    account: { roles: ['manage-account', 'manage-account-links', 'view-profile'] },
  },
  scope: 'profile email',
  client_id: 'billing',
};

test.each(['realm_access.roles', 'resource_access.user-management-service.roles'])(
  'Keycloak has roles in the claim %s',
  async (rolesClaim) => {
    const { issuer, expectAccepted, expectForbidden } = await gateFor(rolesClaim);
    const others = {
      realm_access: { roles: ['offline_access'] },
      resource_access: { account: { roles: ['users.read'] } },
    };

    await expectAccepted({ ...keycloak, aud: [issuer.audience, 'account'] });
    await expectAccepted(keycloak, { typ: 'at+jwt' });
    await expectForbidden({ ...keycloak, ...others });
  },
);

test.each(['scope', 'permissions'])('Auth0 has roles in the claim %s', async (rolesClaim) => {
  const { expectAccepted, expectForbidden } = await gateFor(rolesClaim);
  const claims = {
    sub: 'awZfdIir8YFdGZWkvCejDoUb7SjTDicx@clients',
    gty: 'client-credentials',
    azp: 'awZfdIir8YFdGZWkvCejDoUb7SjTDicx',
    scope: 'users.read users.write',
    permissions: ['users.read', 'users.write'],
  };

  await expectAccepted(claims);
  await expectForbidden({ ...claims, scope: undefined, permissions: [] });
});

test('Entra ID has app roles, and keys that name no algorithm', async () => {
  const { issuer, expectAccepted, expectForbidden } = await gateFor('roles');
  const claims = { azp: '1d3f', idtyp: 'app', oid: '9c0d', tid: 'fa15', ver: '2.0', sub: '9c0d' };
  issuer.publish(issuer.keys.map(({ publicJwk }) => ({ ...publicJwk, alg: undefined })));

  await expectAccepted({ ...claims, roles: ['users.read'] });
  await expectForbidden(claims);
});

test('Okta has scopes and no typ, and a token for its own API is 401', async () => {
  const { expectAccepted, expectRefused } = await gateFor('scp');
  const claims = { ver: 1, cid: '0oa1', scp: ['users.read'], sub: '0oa1' };

  await expectAccepted(claims, { typ: undefined });
  await expectRefused(claims, { typ: 'application/okta-internal-at+jwt' });
});

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
