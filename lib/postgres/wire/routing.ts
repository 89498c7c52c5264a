import type { Settings } from '../../settings/settings.ts';
import { Batcher } from '../batching/batcher.ts';
import { engineOf } from '../engines.ts';
import { clientConfig, SESSION } from '../hosts/connection.ts';
import type { Hosts } from '../hosts/hosts.ts';
import type { Session } from '../hosts/session.ts';
import { timeLimitOf, type Ways } from '../statements.ts';
import { Executor } from './executor.ts';
import { createLockWaiters } from './lock-waiters.ts';

type Opened = { readonly ways: Ways; readonly executors: readonly Executor[] };

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

/** Opens the executors: reads share a session, writes a third of them; each statement of the other kinds has one to itself. */
export function openWays(
  settings: Settings['postgres'],
  hosts: Hosts,
  watch: (session: Session) => void,
): Opened {
  const { poolSize, pooler, poolTimeout } = settings;
  const { hasSessionOptions, limitsLockWaits } = engineOf(settings);
  const options = {
    hosts,
    watch,
    areNamed: pooler === 'none',
    mostWaiting: maxWaiting(settings),
    poolTimeLimit: poolTimeout * 1000,
    timeLimit: timeLimitOf(settings),
  };
  // Without a limit on waits for locks one that waits would hold up the others.
  if (!(hasSessionOptions && limitsLockWaits) || poolSize < LEAST_TO_SHARE) {
    const way = executor(poolSize, 1);
    return {
      ways: { read: way, lookup: way, write: way, item: way, long: way, aside: way },
      executors: [way],
    };
  }
  const forWrites = Math.floor((poolSize - FOR_READS) / 3);
  const forOthers = poolSize - FOR_READS - forWrites;
  const session = { ...SESSION, lock_timeout: String(LOCK_TIMEOUT) };
  const read = executor(FOR_READS, READS_ON_THEIR_WAY, session);
  // The plan of a write is kept, and may have been made when the table was empty: by index all the same.
  const write = executor(forWrites, WRITES_ON_THEIR_WAY, { ...session, enable_seqscan: 'off' });
  const long = executor(forOthers, 1);
  return {
    ways: {
      read,
      lookup: new Batcher(read, { ...options, areWrites: false, maxBatches: 1 }),
      write,
      item: new Batcher(write, { ...options, areWrites: true, maxBatches: forWrites }),
      long,
      aside: createLockWaiters(long, { ...options, most: Math.ceil(forOthers / 3) }),
    },
    executors: [read, write, long],
  };

  function executor(maxSessions: number, depth: number, session = SESSION): Executor {
    const config = {
      ...clientConfig(settings, session),
      ...(hasSessionOptions && { statement_timeout: settings.statementTimeout * 1000 }),
    };
    return new Executor(config, { ...options, maxSessions, depth });
  }
}
