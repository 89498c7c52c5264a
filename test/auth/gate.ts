import { expect, onTestFinished } from 'vitest';
import { listUsers } from '../../handlers/users/list.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startComposition } from '../stage/composition.ts';
import type { Ending } from '../stage/ending.ts';
import { eventOf } from '../stage/events.ts';
import { forbidden, refusal, responseFromResult, type ServiceResponse, USERS } from '../stage/responses.ts';

/** A composed service that only decides whether a caller is accepted, until the test ends. */
export async function startGate(ending: Ending, variables: Variables = {}) {
  const stage = await startComposition(variables);
  ending.onTestFinished(stage.stop);
  const response = listUsers.bind(stage.service);

  async function judge(authorization?: string): Promise<ServiceResponse> {
    const event = await eventOf('listUsers');
    return responseFromResult(await response({ ...event, headers: { ...event.headers, authorization } }));
  }

  return {
    ...stage,
    judge,
    async expectAccepted(token: string): Promise<void> {
      expect(await judge(`Bearer ${token}`)).toMatchObject({ status: 200, body: [] });
    },
    async expectRefused(token: string): Promise<void> {
      expect(await judge(`Bearer ${token}`)).toEqual(refusal('unauthorized_error', USERS));
    },
    /** The token is valid, and its caller lacks the role. */
    async expectForbidden(token: string): Promise<void> {
      expect(await judge(`Bearer ${token}`)).toEqual(forbidden('users.read', USERS));
    },
    refusal: refusal('unauthorized_error', USERS),
  };
}

/**
 * A gate with this SVC_OAUTH_ROLES_CLAIM, until the test ends. It judges tokens with these claims, which have no other
 * roles. A claim or header parameter of `undefined` is left out.
 */
export async function gateFor(rolesClaim: string, ending: Ending = { onTestFinished }) {
  const gate = await startGate(ending, { SVC_OAUTH_ROLES_CLAIM: rolesClaim });
  const sign = (claims: object, header?: object) => gate.issuer.sign({ roles: undefined, ...claims }, header);
  return {
    ...gate,
    expectAccepted: async (...token: Parameters<typeof sign>) => gate.expectAccepted(await sign(...token)),
    expectForbidden: async (...token: Parameters<typeof sign>) => gate.expectForbidden(await sign(...token)),
    expectRefused: async (...token: Parameters<typeof sign>) => gate.expectRefused(await sign(...token)),
  };
}
