import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gate, startGate } from '../stage/gate.ts';

const gates = new Map<string, Gate>();

/** One gate per claim name. */
async function gateFor(claim: string): Promise<Gate> {
  const gate = gates.get(claim) ?? (await startGate({ SVC_OAUTH_ROLES_CLAIM: claim }));
  gates.set(claim, gate);
  return gate;
}

beforeAll(() => gateFor('roles'));

afterAll(() => Promise.all([...gates.values()].map((gate) => gate.stop())));

const tokenWith = async (gate: Gate, claims: object) => gate.issuer.sign({ roles: undefined, ...claims });

describe('the roles claim', () => {
  test.each([
    [['users.read']],
    [['api.superuser']],
    ['users.read'],
    ['  users.read   orders.read '],
    ['api.superuser'],
  ])('grants the role: %j', async (roles) => {
    const gate = await gateFor('roles');
    await gate.expectAccepted(await tokenWith(gate, { roles }));
  });

  test.each([
    [undefined],
    [null],
    [[]],
    [''],
    [['users.write']],
    [['Users.Read']],
    [['users.read users.write']],
    ['users.read,users.write'],
    [42],
    [{ 'users.read': true }],
    [[['users.read']]],
    [['users.read', 42]],
  ])('grants no role: %j, and the caller is 403', async (roles) => {
    const gate = await gateFor('roles');
    await gate.expectForbidden(await tokenWith(gate, { roles }));
  });

  test('has no other name', async () => {
    const gate = await gateFor('roles');
    const claims = { scope: 'users.read', Roles: ['users.read'], realm_access: { roles: ['users.read'] } };

    await gate.expectForbidden(await tokenWith(gate, claims));
  });
});

describe('SVC_OAUTH_ROLES_CLAIM', () => {
  test('can be scope', async () => {
    const gate = await gateFor('scope');

    await gate.expectAccepted(await tokenWith(gate, { scope: 'openid users.read' }));
    await gate.expectForbidden(await tokenWith(gate, { roles: ['users.read'] }));
  });

  test('can be aud, which has the roles in tokens of the local issuer', async () => {
    const gate = await gateFor('aud');
    const { audience } = gate.issuer;

    await gate.expectAccepted(await tokenWith(gate, { aud: [audience, 'users.read'] }));
    await gate.expectForbidden(await tokenWith(gate, { aud: [audience, 'users.write'] }));
    await gate.expectForbidden(await tokenWith(gate, { aud: audience }));
    await gate.expectRefused(await tokenWith(gate, { aud: ['users.read'] }));
  });

  test('can be a URL, which is an ordinary name', async () => {
    const name = 'https://example.com/roles';
    const gate = await gateFor(name);

    await gate.expectAccepted(await tokenWith(gate, { [name]: ['users.read'] }));
  });

  test('with dots names a member with this name if there is one, and otherwise the nested member', async () => {
    const gate = await gateFor('realm_access.roles');
    const exact = (roles: unknown) => ({ 'realm_access.roles': roles });
    const nested = (roles: unknown) => ({ realm_access: { roles } });

    await gate.expectAccepted(await tokenWith(gate, exact(['users.read'])));
    await gate.expectAccepted(await tokenWith(gate, nested(['users.read'])));
    await gate.expectAccepted(await tokenWith(gate, nested('users.read')));
    await gate.expectForbidden(await tokenWith(gate, { ...exact([]), ...nested(['users.read']) }));
    await gate.expectForbidden(await tokenWith(gate, { ...exact(null), ...nested(['users.read']) }));
    await gate.expectForbidden(await tokenWith(gate, { roles: ['users.read'] }));
  });

  test.each([[undefined], [null], ['users.read'], [{ roles: { roles: 'users.read' } }]])(
    'with dots grants no roles if the member does not exist: %j',
    async (realm_access) => {
      const gate = await gateFor('realm_access.roles');
      await gate.expectForbidden(await tokenWith(gate, { realm_access }));
    },
  );

  test.each(['constructor', '__proto__.roles'])(
    'names an own member of the payload, never an inherited one: %s',
    async (claim) => {
      const gate = await gateFor(claim);
      await gate.expectForbidden(await tokenWith(gate, { roles: ['users.read'] }));
    },
  );
});

describe('the log has the reason of a 403: the role, the claim and the roles found', () => {
  test.each([
    [
      'roles',
      { roles: ['users.write', 'orders.read'] },
      'the claim roles has the roles users.write, orders.read',
    ],
    ['roles', { roles: [] }, 'the claim roles has no roles'],
    ['scope', { scope: 'openid' }, 'the claim scope has the roles openid'],
    [
      'realm_access.roles',
      { realm_access: { roles: ['uma'] } },
      'the claim realm_access.roles has the roles uma',
    ],
  ])('in %s of %j', async (claim, claims, found) => {
    const gate = await gateFor(claim);
    const from = gate.lines.length;

    await gate.expectForbidden(await tokenWith(gate, claims));

    const message = `svc-test lacks the role users.read: ${found}`;
    expect(gate.lines.slice(from)).toMatchObject([{ event: 'app_error', status_code: 403, message }]);
  });
});
