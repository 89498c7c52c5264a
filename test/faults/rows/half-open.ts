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
const longest = (entries: readonly Entry[]) =>
  Math.max(...entries.map(({ sent, answered }) => answered - sent));

export const deadConnections: Row = {
  name: 'dead-connections',
  promise:
    'All connections die while idle: 30 readers notice nothing but time, of 30 writers at most those get 503 that were sent on a dead one.',
  trials: 3,
  brief: 1,
  async run(stage) {
    const { service, callers, id, lose, fill, bury } = await withDeadConnections(stage);
    for (const trial of stage.tries()) {
      lose();
      const reads = await Promise.all(Array.from({ length: CALLERS }, () => callers.read(id)));
      stage.claim('no read is refused', refused(reads) === 0, refused(reads));
      stage.claim('every read is answered in time', longest(reads) <= RESPONSE_LIMIT_MS, longest(reads));
      await fill();
      lose();
      const writes = await Promise.all(
        Array.from({ length: CALLERS }, (_, n) => callers.update(id, { full_name: `${trial}-${n}` })),
      );
      stage.claim(
        'as many writes are refused as were sent',
        refused(writes) <= WRITES_IN_FLIGHT,
        refused(writes),
      );
      stage.claim('every write is answered in time', longest(writes) <= RESPONSE_LIMIT_MS, longest(writes));
      await fill();
    }
    bury();
    await service.checkBooks();
  },
};

export const deadConnectionsOneCaller: Row = {
  name: 'dead-connections-one-caller',
  promise: 'All connections die while idle: one slow caller finds out once, not ten times.',
  trials: 2,
  async run(stage) {
    const { service, callers, id, lose, fill, bury } = await withDeadConnections(stage);
    for (const trial of stage.tries()) {
      lose();
      const writes: Entry[] = [];
      for (let write = 0; write < 12; write += 1) {
        writes.push(await callers.update(id, { full_name: `${trial}-${write}` }));
      }
      stage.claim('one write is refused at most', refused(writes) <= 1, refused(writes));
      const slow = writes.filter(({ sent, answered }) => answered - sent > 1000).length;
      stage.claim('one write is slow at most', slow <= 1, slow);
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
