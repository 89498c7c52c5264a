import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { CHANGES, type ChangeBody } from '../stage/changes.ts';
import { type Gate, startGate } from '../stage/gate.ts';
import { freshKey } from '../stage/keyed.ts';
import { freshAddress, readResponse, USERS, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

// Tokens in the form of the providers' documentation, signed by the tests' own issuer. What they need and lack is in
// infra/identity-providers/README.md.
let gate: Gate | undefined;

afterEach(async () => {
  await gate?.stop();
  gate = undefined;
});

/** A gate with this SVC_OAUTH_ROLES_CLAIM. A claim or header parameter of `undefined` is left out of a token. */
async function gateFor(rolesClaim: string) {
  gate = await startGate({ SVC_OAUTH_ROLES_CLAIM: rolesClaim });
  const { issuer } = gate;
  return {
    ...gate,
    sign: (claims: Record<string, unknown>, header: Record<string, unknown> = {}) =>
      issuer.sign({ roles: undefined, ...claims }, header),
    /** Before the first fetch. */
    publish(keys: readonly object[]) {
      expect(issuer.fetches).toBe(0);
      issuer.answer((_request, response) => response.end(JSON.stringify({ keys })));
    },
  };
}

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

describe('Keycloak', () => {
  test.each(['realm_access.roles', 'resource_access.user-management-service.roles'])(
    'has roles in the claim %s',
    async (rolesClaim) => {
      const { sign, issuer, expectAccepted, expectForbidden } = await gateFor(rolesClaim);
      const others = {
        realm_access: { roles: ['offline_access'] },
        resource_access: { account: { roles: ['users.read'] } },
      };

      await expectAccepted(await sign({ ...keycloak, aud: [issuer.audience, 'account'] }));
      await expectAccepted(await sign(keycloak, { typ: 'at+jwt' }));
      await expectForbidden(await sign({ ...keycloak, ...others }));
    },
  );

  test('requires an audience and the client scope basic, and is 401 without them', async () => {
    const { sign, expectRefused } = await gateFor('realm_access.roles');

    await expectRefused(await sign({ ...keycloak, aud: 'account' }));
    await expectRefused(await sign({ ...keycloak, aud: undefined }));
    await expectRefused(await sign({ ...keycloak, sub: undefined }));
  });

  test('serves a key for encryption beside those for signatures', async () => {
    const { sign, issuer, publish, expectAccepted } = await gateFor('realm_access.roles');
    const signing = issuer.keys.map(({ publicJwk }) => publicJwk);
    publish([{ ...signing[0], kid: 'encryption', alg: 'RSA-OAEP', use: 'enc' }, ...signing]);

    await expectAccepted(await sign(keycloak));
  });
});

test.each(['scope', 'permissions'])('Auth0 has roles in the claim %s', async (rolesClaim) => {
  const { sign, expectAccepted, expectForbidden } = await gateFor(rolesClaim);
  const claims = {
    sub: 'awZfdIir8YFdGZWkvCejDoUb7SjTDicx@clients',
    gty: 'client-credentials',
    azp: 'awZfdIir8YFdGZWkvCejDoUb7SjTDicx',
    scope: 'users.read users.write',
    permissions: ['users.read', 'users.write'],
  };

  await expectAccepted(await sign(claims));
  await expectForbidden(await sign({ ...claims, scope: undefined, permissions: [] }));
});

test('Entra ID has app roles, and keys that name no algorithm', async () => {
  const { sign, issuer, publish, expectAccepted, expectForbidden } = await gateFor('roles');
  const claims = { azp: '1d3f', idtyp: 'app', oid: '9c0d', tid: 'fa15', ver: '2.0', sub: '9c0d' };
  publish(issuer.keys.map(({ publicJwk }) => ({ ...publicJwk, alg: undefined })));

  await expectAccepted(await sign({ ...claims, roles: ['users.read'] }));
  await expectForbidden(await sign(claims));
});

test('Okta has scopes and no typ, and a token for its own API is 401', async () => {
  const { sign, expectAccepted, expectRefused } = await gateFor('scp');
  const claims = { ver: 1, cid: '0oa1', scp: ['users.read'], sub: '0oa1' };

  await expectAccepted(await sign(claims, { typ: undefined }));
  await expectRefused(await sign(claims, { typ: 'application/okta-internal-at+jwt' }));
});

test('Cognito has no aud, and scopes that are not roles; the documented trigger adds both', async () => {
  const { sign, issuer, expectAccepted, expectForbidden, expectRefused } = await gateFor('roles');
  const scopes = ['user-management-service/users.read', 'billing/users.write'];
  const claims = { sub: '1example', client_id: '1example', token_use: 'access', scope: scopes.join(' ') };

  await expectRefused(await sign({ ...claims, aud: undefined }));
  await expectForbidden(await sign(claims));
  const added = await triggered({ request: { scopes }, callerContext: { clientId: issuer.audience } });
  expect(added).toEqual({ aud: issuer.audience, roles: ['users.read'] });
  await expectAccepted(await sign({ ...claims, ...added }));
});

test('instances with a second issuer serve the same users, and callers with one sub share actor and keys', async () => {
  const first = await startService();
  const issuer = await startIssuer();
  const second = await startService({}, { database: first.database, issuer });
  onTestFinished(async () => {
    await second.stop();
    await Promise.all([first.stop(), issuer.stop()]);
  });
  const key = { headers: { 'idempotency-key': freshKey() } };
  const [values, others] = [{ email: freshAddress() }, { email: freshAddress() }];
  const created = await readResponse(await first.call('POST', USERS, values, key));
  const replayed = await readResponse(await second.call('POST', USERS, values, key));
  const user = created.body as UserBody;
  await second.call('PATCH', USERS + user.id, { full_name: 'Ada' });
  const changes = (await (await first.call('GET', CHANGES)).json()) as ChangeBody[];
  const crossed = [
    await first.call('GET', USERS, undefined, {
      headers: { authorization: `Bearer ${await issuer.sign()}` },
    }),
    await second.call('GET', USERS, undefined, {
      headers: { authorization: `Bearer ${await first.issuer.sign()}` },
    }),
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
  const program = /```js\n(.*?)```/s.exec(readFileSync('infra/identity-providers/README.md', 'utf8'))?.[1];
  const { handler } = await import(`data:text/javascript,${encodeURIComponent(program ?? '')}`);
  const { response } = await handler(event);
  return response.claimsAndScopeOverrideDetails.accessTokenGeneration.claimsToAddOrOverride;
}
