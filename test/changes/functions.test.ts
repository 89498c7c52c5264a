import { expect, test } from 'vitest';
import { listChanges } from '../../handlers/users/changes.ts';
import type { Handler } from '../../lib/http/gateway.ts';
import { change, nextOf } from '../stage/changes.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { responseFromResult, type ServiceResponse } from '../stage/responses.ts';

const stage = forAllTests(() => startComposition());

/** Calls the function with a link and this many milliseconds of remaining time. */
async function follow(handler: Handler, link: string, left: number): Promise<ServiceResponse> {
  const event = await eventOf('listChanges', { token: await stage.issuer.sign() });
  const rawQueryString = link.split('?')[1] ?? '';
  const until = performance.now() + left;
  const getRemainingTimeInMillis = () => until - performance.now();
  return responseFromResult(await handler({ ...event, rawQueryString }, { getRemainingTimeInMillis }));
}

test('a wait ends before the time limit of the function, and at once when a change comes', async () => {
  const handler = listChanges.bind(stage.service);
  const end = `${nextOf(await stage.call(listChanges, 'listChanges-end'))}&wait=20`;
  const without = await follow(handler, end, 2000);
  expect([without.status, without.body]).toEqual([200, []]);

  const waiting = follow(handler, end, 30_000);
  const given = await stage.createUser();
  expect((await waiting).body).toEqual([change('user.created', given, 1)]);
  // Without time to wait.
  expect((await follow(handler, end, 700)).body).toEqual([change('user.created', given, 1)]);
});
