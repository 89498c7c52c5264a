import { describe, expect, test } from 'vitest';
import { connectTo, requestText } from '../stage/connection.ts';
import { holdUsers } from '../stage/locks.ts';
import { USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

/** More requests than may be queued while PostgreSQL responds to none, as in limits.ts. */
const FLOOD = 300;

/** Number of requests of the quiet caller, each on a connection of its own. */
const SINGLE = 5;

/** In milliseconds. An earlier refusal means that the queue is full; the other refusals come after 0.85 s. */
const PROMPT_MS = 500;

type FloodWith = (sign: (sub: string) => Promise<string>) => Promise<string | undefined>;

/** A service whose table is locked and whose queue is full of requests that `flood` sends. */
async function startFlooded(
  { onTestFinished }: { onTestFinished(fn: () => unknown): void },
  floodWith: FloodWith,
) {
  const service = await startService({
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_POSTGRES_POOL_TIMEOUT: '30',
    SVC_POSTGRES_STATEMENT_TIMEOUT: '30',
  });
  const sign = (sub: string) => service.issuer.sign({ sub });
  const read = async (token: string | undefined) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return (await fetch(service.url + USERS, { headers })).status;
  };
  const [quiet, loud] = [await sign('quiet'), await floodWith(sign)];
  // The service now knows the callers with a verified token.
  await Promise.all([read(quiet), read(loud)]);
  const lock = await holdUsers(service.database);
  onTestFinished(async () => {
    await lock.release();
    await service.stop();
  });

  const single = requestText(`GET ${USERS}`, { Authorization: `Bearer ${quiet}` });
  const connections = await Promise.all(Array.from({ length: SINGLE }, () => connectTo(service.url)));
  // All are accepted before the flood begins.
  for (const connection of connections) {
    connection.send(requestText('GET /health', {}));
    await connection.answer();
  }
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

describe('while one caller fills the queue, the single requests of another are served', () => {
  const cases: readonly [name: string, floodWith: FloodWith, kind: string][] = [
    ['with its own token', (sign) => sign('loud'), 'known'],
    ['with a made-up token', async () => 'made.up.token', 'unverified'],
    ['without a token', async () => undefined, 'unverified'],
  ];
  for (const [name, floodWith, caller] of cases) {
    test(name, BY_TIME, async (context) => {
      const { service, lock, sent, sendSingle } = await startFlooded(context, floodWith);
      const statuses = sendSingle();
      await lock.release();

      expect(await statuses).toEqual(Array.from({ length: SINGLE }, () => 200));
      expect(await Promise.all(sent)).toContain(503);
      const refused = await until('refusals are logged', async () => {
        const found = (await service.events()).filter(({ event }) => event === 'requests_refused');
        return found.length > 0 && found;
      });
      expect(new Set(refused.map((line) => line.caller))).toEqual(new Set([caller]));
    });
  }
});
