import type { Settings } from '../../settings/settings.ts';
import { Batcher } from '../batching/batcher.ts';
import { engineProfile } from '../engine-profile.ts';
import { clientConfig, SESSION } from '../hosts/connection.ts';
import type { Hosts } from '../hosts/hosts.ts';
import type { Session } from '../hosts/session.ts';
import { type Executors, timeLimitOf } from '../sender.ts';
import { createLockWaiters } from './lock-waiters.ts';
import { SessionExecutor } from './session-executor.ts';

type Opened = { readonly executors: Executors; readonly pools: readonly SessionExecutor[] };

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
export function openExecutors(
  settings: Settings['postgres'],
  hosts: Hosts,
  watch: (session: Session) => void,
): Opened {
  const { poolSize, pooler, poolTimeout } = settings;
  const { hasSessionOptions, limitsLockWaits } = engineProfile(settings);
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
    const all = executor(poolSize, 1);
    return {
      executors: { 'batched-read': all, 'batched-write': all, list: all, single: all, 'lock-waiters': all },
      pools: [all],
    };
  }
  const forWrites = Math.floor((poolSize - FOR_READS) / 3);
  const forOthers = poolSize - FOR_READS - forWrites;
  const session = { ...SESSION, lock_timeout: String(LOCK_TIMEOUT) };
  const list = executor(FOR_READS, READS_ON_THEIR_WAY, session);
  // The plan of a write is kept, and may have been made when the table was empty: by index all the same.
  const write = executor(forWrites, WRITES_ON_THEIR_WAY, { ...session, enable_seqscan: 'off' });
  const single = executor(forOthers, 1);
  return {
    executors: {
      'batched-read': new Batcher(list, { ...options, areWrites: false, maxBatches: 1 }),
      'batched-write': new Batcher(write, { ...options, areWrites: true, maxBatches: forWrites }),
      list,
      single,
      'lock-waiters': createLockWaiters(single, { ...options, most: Math.ceil(forOthers / 3) }),
    },
    pools: [list, write, single],
  };

  function executor(maxSessions: number, depth: number, session = SESSION): SessionExecutor {
    const config = {
      ...clientConfig(settings, session),
      ...(hasSessionOptions && { statement_timeout: settings.statementTimeout * 1000 }),
    };
    return new SessionExecutor(config, { ...options, maxSessions, depth });
  }
}
