import { onTestFinished } from 'vitest';
import type { Ending } from '../stage/ending.ts';
import { startGate } from '../stage/gate.ts';

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
