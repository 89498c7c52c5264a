import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

const FOLDER = join(import.meta.dirname, '../../infra/examples/identity-providers');

/** The documented claims of each provider for these roles, beside `iss`, `aud`, `exp` and `iat`. */
const SHAPES: Readonly<Record<string, (roles: string[]) => Record<string, unknown>>> = {
  keycloak: (roles) => ({
    typ: 'Bearer',
    azp: 'billing',
    sub: 'fdd939f4-bcd1-4e26-aa97-d236cd2ada8e',
    realm_access: { roles: ['offline_access'] },
    resource_access: { 'user-management-service': { roles }, account: { roles: ['view-profile'] } },
    scope: 'profile email',
  }),
  auth0: (roles) => ({ sub: 'awZf@clients', gty: 'client-credentials', azp: 'awZf', scope: roles.join(' ') }),
  'entra-id': (roles) => ({ azp: '1d3f', idtyp: 'app', oid: '9c0d', sub: '9c0d', ver: '2.0', roles }),
  okta: (roles) => ({ ver: 1, cid: '0oa1', sub: '0oa1', scp: roles }),
  cognito: (roles) => ({ sub: '1example', client_id: '1example', token_use: 'access', roles }),
};

test('there is an example for each provider', () => {
  const names = globSync('*.env', { cwd: FOLDER }).map((file) => file.replace('.env', ''));
  expect(names.sort()).toEqual(Object.keys(SHAPES).sort());
});

test.each(Object.keys(SHAPES))(
  'with the settings for %s, its tokens grant the roles that they name',
  async (name) => {
    const settings = parseEnv(readFileSync(join(FOLDER, `${name}.env`), 'utf8'));
    const issuer = await forThisTest(startIssuer);
    // The keys are those of the tests' issuer. Everything else is as in the example.
    const service = await forThisTest(startService, { ...settings, SVC_OAUTH_JWKS_URI: issuer.jwksUri });
    const { SVC_OAUTH_ISSUER: iss, SVC_OAUTH_AUDIENCE: audiences } = settings;
    const aud = audiences?.split(',').at(-1);
    const call = async (roles: string[], method: string, body?: object) => {
      const claims = { iss, aud, roles: undefined, ...SHAPES[name]?.(roles) };
      const authorization = `Bearer ${await issuer.sign(claims as never)}`;
      return (await service.call(method, '/api/v1/users/', body, { headers: { authorization } })).status;
    };

    const statuses = [
      await call(['users.read'], 'GET'),
      await call(['users.write'], 'POST', { email: 'ada@example.com' }),
      await call(['users.write'], 'GET'),
      await call([], 'GET'),
    ];
    expect(statuses).toEqual([200, 201, 403, 403]);
  },
);
