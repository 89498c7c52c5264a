import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { freshKey } from '../stage/keyed.ts';
import { holdEmail, untilUnderWay } from '../stage/locks.ts';
import { freshAddress, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { createUser } = service;

const OTHERS = 10;
const WAITING = 200;

/**
 * In milliseconds: the period in which successes are counted; the pause of a caller, which keeps the machine idle;
 * the warm-up.
 */
const PERIOD = 1000;
const PAUSE = 20;
const WARM_UP = 500;

type Caller = {
  readonly method: string;
  readonly path: (id: string) => string;
  readonly body?: () => object;
  readonly isKeyed?: boolean;
};

/** Sends requests one after another on this many connections until it is stopped, and counts the successes. */
async function startCallers(count: number, { method, path, body, isKeyed = false }: Caller, id: string) {
  const token = await service.issuer.sign();
  const agent = new Agent({ keepAlive: true, maxSockets: count });
  let [isStopped, succeeded] = [false, 0];

  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(isKeyed && { 'idempotency-key': freshKey() }),
      };
      const sent = request(service.url + path(id), { method, headers, agent }, (response) => {
        if (response.statusCode === 200 || response.statusCode === 201) succeeded += 1;
        response.resume().on('end', resolve);
      });
      sent.on('error', reject).end(body && JSON.stringify(body()));
    });
  const all = Array.from({ length: count }, async () => {
    while (!isStopped) {
      await ask();
      await sleep(PAUSE);
    }
  });

  return {
    /** The number of successes within the period. */
    async measure() {
      const before = succeeded;
      await sleep(PERIOD);
      return succeeded - before;
    },
    async stop() {
      isStopped = true;
      await Promise.all(all);
      agent.destroy();
    },
  };
}

test.each<readonly [string, Caller]>([
  ['reads', { method: 'GET', path: (id) => USERS + id }],
  ['lists', { method: 'GET', path: () => `${USERS}?limit=1` }],
  ['updates', { method: 'PATCH', path: (id) => USERS + id, body: () => ({ full_name: 'Ada' }) }],
  ['creates without a key', { method: 'POST', path: () => USERS, body: () => ({ email: freshAddress() }) }],
])('waiting creates under a key do not delay %s of others', async (_, caller) => {
  const { id } = await createUser();
  const others = await startCallers(OTHERS, caller, id);
  await sleep(WARM_UP);
  const alone = await others.measure();

  const email = freshAddress();
  const { release } = await holdEmail(service.database, email);
  const keyed = { method: 'POST', path: () => USERS, body: () => ({ email }), isKeyed: true };
  const waiting = await startCallers(WAITING, keyed, id);
  // Writes leave one of the six connections to reads.
  await untilUnderWay(5, service.database, 10, 50);
  const beside = await others.measure();
  await release();
  await Promise.all([waiting.stop(), others.stop()]);

  // A busy machine serves fewer, because it also refuses waiting requests. Without this rule it was a thirtieth.
  expect(beside).toBeGreaterThan(alone / 3);
});
