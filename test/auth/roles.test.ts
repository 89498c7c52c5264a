import { afterAll, describe, expect, test } from 'vitest';
import { gateFor } from './gate.ts';

describe('the roles claim', async () => {
  const { expectAccepted, expectForbidden } = await gateFor('roles', { onTestFinished: afterAll });

  test.each([
    [['users.read']],
    [['api.superuser']],
    ['users.read'],
    ['  users.read   orders.read '],
    ['api.superuser'],
  ])('grants the role: %j', async (roles) => {
    await expectAccepted({ roles });
  });

  const withoutRole = [
    ...[undefined, null, [], '', ['users.write'], ['Users.Read'], ['users.read users.write']],
    ...['users.read,users.write', 42, { 'users.read': true }, [['users.read']], ['users.read', 42]],
  ];

  test.each(withoutRole.map((roles) => [roles]))(
    'grants no role: %j, and the caller is 403',
    async (roles) => {
      await expectForbidden({ roles });
    },
  );

  test('has no other name', async () => {
    await expectForbidden({
      scope: 'users.read',
      Roles: ['users.read'],
      realm_access: { roles: ['users.read'] },
    });
  });
});

describe('SVC_OAUTH_ROLES_CLAIM', () => {
  test('can be aud, which has the roles in tokens of the local issuer', async () => {
    const { issuer, expectAccepted, expectForbidden, expectRefused } = await gateFor('aud');
    const { audience } = issuer;

    await expectAccepted({ aud: [audience, 'users.read'] });
    await expectForbidden({ aud: [audience, 'users.write'] });
    await expectForbidden({ aud: audience });
    await expectRefused({ aud: ['users.read'] });
  });

  test('with dots names a member with this name if there is one, and otherwise the nested member', async () => {
    const { expectAccepted, expectForbidden } = await gateFor('realm_access.roles');
    const exact = (roles: unknown) => ({ 'realm_access.roles': roles });
    const nested = (roles: unknown) => ({ realm_access: { roles } });

    await expectAccepted(exact(['users.read']));
    await expectAccepted(nested(['users.read']));
    await expectAccepted(nested('users.read'));
    await expectForbidden({ ...exact([]), ...nested(['users.read']) });
    await expectForbidden({ ...exact(null), ...nested(['users.read']) });
    await expectForbidden({ roles: ['users.read'] });
  });

  test('can name a member at any depth, also with hyphens', async () => {
    const { expectAccepted } = await gateFor('resource_access.user-management-service.roles');
    await expectAccepted({ resource_access: { 'user-management-service': { roles: ['users.read'] } } });
  });

  test.each([undefined, null, 'users.read', { roles: { roles: 'users.read' } }])(
    'with dots grants no roles if the member does not exist: %j',
    async (realm_access) => {
      const { expectForbidden } = await gateFor('realm_access.roles');
      await expectForbidden({ realm_access });
    },
  );

  test.each(['constructor', '__proto__.roles'])(
    'names an own member of the payload, never an inherited one: %s',
    async (claim) => {
      const { expectForbidden } = await gateFor(claim);
      await expectForbidden({ roles: ['users.read'] });
    },
  );
});

describe('the log has the reason of a 403: the role, the claim and the roles found', () => {
  test.each([
    ['roles', { roles: ['users.write', 'orders.read'] }, 'the roles users.write, orders.read'],
    ['roles', { roles: [] }, 'no roles'],
    ['scope', { scope: 'openid' }, 'the roles openid'],
    ['realm_access.roles', { realm_access: { roles: ['uma'] } }, 'the roles uma'],
  ])('in %s of %j', async (claim, claims, found) => {
    const { expectForbidden, lines } = await gateFor(claim);
    await expectForbidden(claims);

    const message = `svc-test lacks the role users.read: the claim ${claim} has ${found}`;
    expect(lines).toMatchObject([{ event: 'app_error', status_code: 403, message }]);
  });
});
