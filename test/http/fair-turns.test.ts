import { expect, onTestFinished, test, vi } from 'vitest';
import { simulateAdmissionTime } from '../stage/admission-time.ts';
import { connectAndSend, requestText, untilReceived } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT } from '../stage/locks.ts';
import { USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { times, until } from '../stage/until.ts';

/** Number of requests that are admitted with one connection to PostgreSQL. Further requests are queued. */
const INSIDE = 17;

/** Twice as many are more than the 128 that may be queued while PostgreSQL responds to none, as in limits.ts. */
const FLOOD = 100;

/** Number of requests of the quiet caller, each on a connection of its own. */
const SINGLE = 5;

/** The caller that fills the queue: with a token of its own, a made-up one, or none. */
type Loud = { readonly sub?: string; readonly token?: string };

/** A service whose table is locked and whose queue is full of requests of one caller. */
async function startFlooded({ sub, token }: Loud) {
  simulateAdmissionTime();
  const service = await forThisTest(startService, { ...PATIENT, SVC_POSTGRES_POOL_SIZE: '1' });
  const requestOf = (bearer: string | undefined) =>
    requestText(`GET ${USERS}`, bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` });
  async function open(request: string) {
    const connection = await connectAndSend(service.url, request);
    onTestFinished(() => connection.close());
    return connection;
  }
  const quiet = requestOf(await service.issuer.sign({ sub: 'quiet' }));
  const loud = requestOf(sub ? await service.issuer.sign({ sub }) : token);
  // The service now knows the callers with a verified token.
  for (const request of [quiet, loud]) await (await open(request)).answer();
  const lock = await forThisTest(holdUsers, service.database);

  const single = await times(SINGLE, () => open(requestText('GET /health', {})));
  for (const connection of single) await connection.answer();
  /** Resolves with the statuses to come, when the service has received so many requests. */
  async function send(count: number, request: string) {
    const connections = await times(count, () => open(request));
    const statuses = connections.map(async (connection) => (await connection.answer()).status);
    // If the test fails, it does not wait for them.
    void Promise.allSettled(statuses);
    await untilReceived(service.url);
    return statuses;
  }
  const sent = await send(INSIDE, quiet);
  // The pace falls while no request of the flood is admitted.
  for (let part = 0; part < 3; part += 1) {
    sent.push(...(await send(FLOOD, loud)));
    vi.advanceTimersByTime(500);
  }
  const last = await send(FLOOD, loud);
  // No time has passed since these were sent, so the reason is that there is no room.
  expect(await Promise.race(last)).toBe(503);
  return {
    service,
    lock,
    sent: [...sent, ...last],
    /** The quiet caller sends a request on each of its connections. */
    async sendSingle() {
      for (const connection of single) connection.send(quiet);
      await untilReceived(service.url);
      return single.map(async (connection) => (await connection.answer()).status);
    },
  };
}

test.each<[name: string, loud: Loud, kind: string]>([
  ['with its own token', { sub: 'loud' }, 'known'],
  ['with a made-up token', { token: 'made.up.token' }, 'unverified'],
  ['without a token', {}, 'unverified'],
])(
  'while one caller fills the queue, the single requests of another are served: %s',
  async (_name, loud, caller) => {
    const { service, lock, sent, sendSingle } = await startFlooded(loud);
    const statuses = await sendSingle();
    await lock.release();

    expect(await Promise.all(statuses)).toEqual(Array.from({ length: SINGLE }, () => 200));
    await Promise.all(sent);
    const refused = await until('refusals are logged', async () => {
      const found = (await service.events()).filter(({ event }) => event === 'requests_refused');
      return found.length > 0 && found;
    });
    const [timestamp, count] = [expect.any(String), expect.any(Number)];
    for (const line of refused)
      expect(line).toEqual({ timestamp, level: 'warning', event: 'requests_refused', count, caller });
  },
);
