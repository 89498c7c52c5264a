import type { Pool } from 'pg';
import type { Settings } from '../../settings.ts';
import { engineOf } from '../engines.ts';
import { clientConfig, openPool, SESSION } from '../servers/connection.ts';
import type { Hosts } from '../servers/hosts.ts';
import { timeLimitOf, type Ways } from '../statements.ts';
import { asideOf } from './aside.ts';
import { Batcher } from './batcher.ts';
import { LONGEST_IDLE } from './borrowed.ts';
import { exclusiveConnections } from './exclusive.ts';
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

/** Each waits for the disk; so few that none waits for long behind those that wait for a lock. */
const WRITES_ON_THEIR_WAY = 3;

/** Opens the pools and the ways over them: reads share a connection, writes a third of them; the others are for one statement each. */
export function openWays(settings: Settings['postgres'], hosts: Hosts): Opened {
  const { poolSize, pooler, poolTimeout } = settings;
  const { hasSessionOptions, limitsLockWaits } = engineOf(settings);
  const { Session } = hosts;
  const options = {
    hosts,
    areNamed: pooler === 'none',
    mostWaiting: maxWaiting(settings),
    poolTimeLimit: poolTimeout * 1000,
    timeLimit: timeLimitOf(settings),
  };
  // Without a limit on waits for locks one that waits would hold up the others.
  if (!(hasSessionOptions && limitsLockWaits) || poolSize < LEAST_TO_SHARE) {
    const pool = open(poolSize);
    const way = exclusiveConnections(pool, options);
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
  const forOthers = poolSize - FOR_READS - forWrites;
  const [reads, writes, others] = [open(FOR_READS, session), open(forWrites, writing), open(forOthers)];
  const read = sharedConnections(reads, { ...options, mostSent: READS_ON_THEIR_WAY });
  const write = sharedConnections(writes, { ...options, mostSent: WRITES_ON_THEIR_WAY });
  const long = exclusiveConnections(others, options);
  return {
    ways: {
      read,
      lookup: new Batcher(read, { ...options, areWrites: false, maxBatches: 1 }),
      write,
      item: new Batcher(write, { ...options, areWrites: true, maxBatches: forWrites }),
      long,
      aside: asideOf(long, { ...options, most: Math.ceil(forOthers / 3) }),
    },
    pools: [reads, writes, others],
    shared: [read, write],
  };

  function open(max: number, session = SESSION): Pool {
    const config = {
      ...clientConfig(settings, session),
      ...(hasSessionOptions && { statement_timeout: settings.statementTimeout * 1000 }),
      max,
      idleTimeoutMillis: LONGEST_IDLE,
      maxLifetimeSeconds: 1800,
    };
    return openPool(config, Session);
  }
}
