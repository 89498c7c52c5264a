import type { Entry } from '../../lab/ledger/ledger.ts';
import type { Stage } from '../../lab/stage/stage.ts';
import { through } from '../../stage/proxy.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

const CALLERS = 30;
/** Three on each of the three connections that writes share. */
const WRITES_IN_FLIGHT = 9;

const RESPONSE_LIMIT_MS = 5000;

/** A service with all connections of its pool, all of which have died without a word. */
async function withDeadConnections({ proxyPostgres, startService, postgres }: Stage) {
  const proxy = await proxyPostgres();
  const service = await startService(proxy.through);
  const callers = service.caller(CALLERS);
  const { id } = JSON.parse((await callers.create({ email: `${crypto.randomUUID()}@example.com` })).body);
  // Reads share a connection, writes some, and what takes long has the others.
  const fill = async () => {
    const before = await postgres.countSessions();
    await Promise.all(
      Array.from({ length: CALLERS }, () => [
        callers.read(String(id)),
        callers.update(String(id), {}),
        callers.read('?skip=1&limit=1000'),
      ]).flat(),
    );
    return (await postgres.countSessions()) === before;
  };
  await until('no more connections are opened', fill);
  return {
    service,
    callers,
    id: String(id),
    lose: proxy.forget,
    fill: () => until('no more connections are opened', fill),
    /** PostgreSQL, too, learns that the dead are dead. */
    bury: () => proxy.cutAll(),
  };
}

const refused = (entries: readonly Entry[]) => entries.filter(({ status }) => status === 503).length;

export const deadConnections: Row = {
  name: 'dead-connections',
  promise:
    'All connections die while idle: 30 readers notice nothing but time, of 30 writers at most those get 503 that were sent on a dead one, and one slow caller finds out once.',
  trials: 3,
  brief: 1,
  async run(stage) {
    const { claim } = stage;
    const { service, callers, id, lose, fill, bury } = await withDeadConnections(stage);
    const update = (full_name: string) => callers.update(id, { full_name });
    const all = <Sent>(send: (n: number) => Promise<Sent>) =>
      Promise.all(Array.from({ length: CALLERS }, (_, n) => send(n)));
    for (const trial of stage.tries()) {
      lose();
      const reads = await all(() => callers.read(id));
      claim('no read is refused', refused(reads) === 0, refused(reads));
      await fill();
      lose();
      const writes = await all((n) => update(`${trial}-${n}`));
      claim('as many writes are refused as were sent', refused(writes) <= WRITES_IN_FLIGHT, refused(writes));
      const longest = Math.max(...[...reads, ...writes].map(({ sent, answered }) => answered - sent));
      claim('every response comes in time', longest <= RESPONSE_LIMIT_MS, longest);
      await fill();
      lose();
      const single: Entry[] = [];
      for (let write = 0; write < 12; write += 1) single.push(await update(`${trial}-one-${write}`));
      claim('one write of a slow caller is refused at most', refused(single) <= 1, refused(single));
      const slow = single.filter(({ sent, answered }) => answered - sent > 1000).length;
      claim('one write of a slow caller is slow at most', slow <= 1, slow);
      await fill();
    }
    bury();
    await service.checkBooks();
  },
};

export const migrationHalfOpen: Row = {
  name: 'migration-half-open',
  promise:
    'The connection of the first migration dies after it has the lock: ready within 15 seconds all the same.',
  trials: 3,
  brief: 1,
  async run({ startService, proxyPostgres, postgres, tries, claim, recovered }) {
    for (const trial of tries()) {
      await postgres.query(`CREATE DATABASE fresh_${trial} TEMPLATE template0 STRATEGY FILE_COPY`);
      const proxy = await proxyPostgres();
      let isLocked = false;
      // The answer to the question for the lock is the last thing that comes through.
      proxy.requestsThrough(() =>
        through(async (chunk, push) => {
          push(chunk);
          if (isLocked || !chunk.includes('pg_try_advisory_lock')) return;
          isLocked = true;
          setTimeout(proxy.forget, 20);
        }),
      );
      const begun = performance.now();
      const service = await startService(
        { ...proxy.through, SVC_POSTGRES_DB: `fresh_${trial}` },
        { untilReady: false },
      );
      const isReady = async () => (await fetch(`${service.url}/ready`)).ok;
      const inTime = await until('/ready', isReady, { seconds: 30 }).catch(() => false);
      const seconds = (performance.now() - begun) / 1000;
      claim('the connection was lost', isLocked);
      claim('it is ready within 15 seconds', inTime && seconds <= 15, seconds);
      recovered(seconds);
    }
  },
};
