import type { Pool } from 'pg';
import type { Settings } from '../../settings.ts';
import { engineOf } from '../engines.ts';
import { clientConfig, openPool, SESSION } from '../servers/connection.ts';
import type { Servers } from '../servers/servers.ts';
import { timeLimitOf, type Ways } from '../statements.ts';
import { asideOf } from './aside.ts';
import { LONGEST_IDLE } from './borrowed.ts';
import { exclusiveConnections } from './exclusive.ts';
import { gatheringLookups } from './gathered-lookups.ts';
import { gatheringWrites } from './gathered-writes.ts';
import { type SharedConnections, sharedConnections } from './shared.ts';

type Opened = {
  readonly ways: Ways;
  readonly pools: readonly Pool[];
  readonly shared: readonly SharedConnections[];
};

/** In milliseconds: whoever waits for a lock goes aside then, for others wait behind him. */
const LOCK_TIMEOUT = 20;

/** How many statements may wait for an executor: 32 for each connection; one more would only wait in vain. */
export const maxWaiting = ({ poolSize }: Pick<Settings['postgres'], 'poolSize'>) => poolSize * 32;

/** With fewer connections than these none is shared. */
const LEAST_TO_SHARE = 4;

/** Reads keep PostgreSQL busy without waiting for anything, so that more connections are no faster. */
const FOR_READS = 1;
const READS_ON_THEIR_WAY = 64;

/** With as many connections as these one is for lookups that go past others. */
const LEAST_TO_GO_PAST = 6;

/** Each waits for the disk; so few that none waits for long behind those that wait for a lock. */
const WRITES_ON_THEIR_WAY = 3;

/** Opens the pools and the ways over them: reads share a connection, writes a third of them; the others are for one statement each. */
export function openWays(settings: Settings['postgres'], Client: Servers['Client']): Opened {
  const { poolSize, pooler, poolTimeout } = settings;
  const { hasSessionOptions, limitsLockWaits } = engineOf(settings);
  const mostWaiting = maxWaiting(settings);
  const waiting = { areNamed: pooler === 'none', mostWaiting };
  // Without a limit on waits for locks one that waits would hold up the others.
  if (!(hasSessionOptions && limitsLockWaits) || poolSize < LEAST_TO_SHARE) {
    const pool = open(poolSize);
    const way = exclusiveConnections(pool, waiting);
    return {
      ways: { read: way, lookup: way, write: way, item: way, long: way, aside: way },
      pools: [pool],
      shared: [],
    };
  }
  const forWrites = Math.floor((poolSize - FOR_READS) / 3);
  const session = { ...SESSION, lock_timeout: String(LOCK_TIMEOUT) };
  // The plan of a write is kept, and may have been made when the table was empty: by index all the same.
  const writing = { ...session, enable_seqscan: 'off' };
  const options = {
    mostWaiting,
    poolTimeLimit: poolTimeout * 1000,
    timeLimit: timeLimitOf(settings),
  };
  const goingPast = poolSize < LEAST_TO_GO_PAST ? [] : [open(1, session)];
  const forOthers = poolSize - FOR_READS - goingPast.length - forWrites;
  const [reads, writes, others] = [open(FOR_READS, session), open(forWrites, writing), open(forOthers)];
  const reading = { ...options, mostSent: READS_ON_THEIR_WAY };
  const read = sharedConnections(reads, reading);
  const past = goingPast.map((pool) => sharedConnections(pool, reading));
  const write = sharedConnections(writes, { ...options, mostSent: WRITES_ON_THEIR_WAY });
  const long = exclusiveConnections(others, waiting);
  return {
    ways: {
      read,
      lookup: gatheringLookups({ ways: [read, ...past], ...options }),
      write,
      item: gatheringWrites(write, { ...options, mostGroups: forWrites }),
      long,
      aside: asideOf(long, { ...waiting, most: Math.floor(forOthers / 2) }),
    },
    pools: [reads, ...goingPast, writes, others],
    shared: [read, ...past, write],
  };

  function open(max: number, session = SESSION): Pool {
    const config = {
      ...clientConfig(settings, poolTimeout, session),
      ...(hasSessionOptions && { statement_timeout: settings.statementTimeout * 1000 }),
      max,
      idleTimeoutMillis: LONGEST_IDLE,
      maxLifetimeSeconds: 1800,
    };
    return openPool(config, Client);
  }
}
