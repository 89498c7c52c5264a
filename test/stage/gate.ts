import { expect } from 'vitest';
import { listUsers } from '../../handlers/users/list.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startComposition } from './composition.ts';
import type { Ending } from './ending.ts';
import { eventOf } from './events.ts';
import { forbidden, refusal, responseFromResult, type ServiceResponse, USERS } from './responses.ts';

/** A composed service that only decides whether a caller is accepted, until the test ends. */
export async function startGate({ onTestFinished }: Ending, variables: Variables = {}) {
  const stage = await startComposition(variables);
  onTestFinished(stage.stop);
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

export type Gate = Awaited<ReturnType<typeof startGate>>;
