import { expect, test } from 'vitest';
import { connectAndSend, requestText } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers } from '../stage/locks.ts';
import { USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { times } from '../stage/times.ts';
import { until } from '../stage/until.ts';

/** More requests than may be queued while PostgreSQL responds to none, as in limits.ts. */
const FLOOD = 300;

/** Number of requests of the quiet caller, each on a connection of its own. */
const SINGLE = 5;

/** In milliseconds. An earlier refusal means that the queue is full; the other refusals come after 0.85 s. */
const PROMPT_MS = 500;

/** The caller that fills the queue: with a token of its own, a made-up one, or none. */
type Loud = { readonly sub?: string; readonly token?: string };

/** A service whose table is locked and whose queue is full of requests of one caller. */
async function startFlooded({ sub, token }: Loud) {
  const service = await forThisTest(startService, {
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_POSTGRES_POOL_TIMEOUT: '30',
    SVC_POSTGRES_STATEMENT_TIMEOUT: '30',
  });
  const read = async (bearer: string | undefined) => {
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    return (await fetch(service.url + USERS, { headers })).status;
  };
  const quiet = await service.issuer.sign({ sub: 'quiet' });
  const loud = sub ? await service.issuer.sign({ sub }) : token;
  // The service now knows the callers with a verified token.
  await Promise.all([read(quiet), read(loud)]);
  const lock = await forThisTest(holdUsers, service.database);

  const single = requestText(`GET ${USERS}`, { Authorization: `Bearer ${quiet}` });
  const connections = await times(SINGLE, () => connectAndSend(service.url, requestText('GET /health', {})));
  // All are accepted before the flood begins.
  for (const connection of connections) await connection.answer();
  const sent: Promise<number>[] = [];
  // These occupy the connection to PostgreSQL.
  for (let count = 0; count < 17; count += 1) sent.push(read(quiet));
  await until('the queue is full', async () => {
    const begun = performance.now();
    const reads = Array.from({ length: FLOOD }, () => read(loud));
    sent.push(...reads);
    const first = await Promise.race(reads);
    return first === 503 && performance.now() - begun < PROMPT_MS;
  });
  return {
    service,
    lock,
    sent,
    /** The quiet caller sends a request on each of its connections. */
    sendSingle() {
      for (const connection of connections) connection.send(single);
      return Promise.all(connections.map(async (connection) => (await connection.answer()).status));
    },
  };
}

/** Admission depends on the time that requests take. On a busy machine its decisions differ from the expected ones. */
const BY_TIME = { retry: 2 };

test.each<[name: string, loud: Loud, kind: string]>([
  ['with its own token', { sub: 'loud' }, 'known'],
  ['with a made-up token', { token: 'made.up.token' }, 'unverified'],
  ['without a token', {}, 'unverified'],
])(
  'while one caller fills the queue, the single requests of another are served: %s',
  BY_TIME,
  async (_name, loud, caller) => {
    const { service, lock, sent, sendSingle } = await startFlooded(loud);
    const statuses = sendSingle();
    await lock.release();

    expect(await statuses).toEqual(Array.from({ length: SINGLE }, () => 200));
    expect(await Promise.all(sent)).toContain(503);
    const refused = await until('refusals are logged', async () => {
      const found = (await service.events()).filter(({ event }) => event === 'requests_refused');
      return found.length > 0 && found;
    });
    const [timestamp, count] = [expect.any(String), expect.any(Number)];
    for (const line of refused)
      expect(line).toEqual({ timestamp, level: 'warning', event: 'requests_refused', count, caller });
  },
);
