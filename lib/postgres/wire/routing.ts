import type { Settings } from '../../settings/settings.ts';
import { Batcher } from '../batching/batcher.ts';
import { engineProfile } from '../engine-profile.ts';
import { clientConfig, SESSION } from '../hosts/connection-config.ts';
import type { Hosts } from '../hosts/hosts.ts';
import type { Session } from '../hosts/session.ts';
import type { Executors } from '../sender.ts';
import { createLockWaiters } from './lock-waiters.ts';
import { SessionExecutor } from './session-executor.ts';

type Opened = { readonly executors: Executors; readonly pools: readonly SessionExecutor[] };

/** In milliseconds: whoever waits for a lock goes aside then, for others wait behind him. */
const LOCK_TIMEOUT_MS = 20;

/** How many statements may wait for an executor: 32 for each connection; one more would only wait in vain. */
export const queueLimit = ({ poolSize }: Pick<Settings['postgres'], 'poolSize'>) => poolSize * 32;

/** In milliseconds: a response may arrive so much later than PostgreSQL sent it. */
const GRACE_MS = 100;

/** With fewer connections than these none is shared. */
const MIN_SHARED_POOL_SIZE = 4;

/** Reads keep PostgreSQL busy without waiting for anything, so that more connections are no faster. */
const READ_SESSIONS = 1;
const READ_DEPTH = 64;

/** Each waits for the disk; so few that none waits for long behind those that wait for a lock. */
const WRITE_DEPTH = 3;

/** Opens the executors: reads share a session, writes a third of them; each statement of the other kinds has one to itself. */
export function openExecutors(
  settings: Settings['postgres'],
  hosts: Hosts,
  watch: (session: Session) => void,
): Opened {
  const { poolSize, pooler, poolTimeout, statementTimeout } = settings;
  const { hasSessionOptions, limitsLockWaits } = engineProfile(settings);
  const options = {
    hosts,
    watch,
    areNamed: pooler === 'none',
    maxWaiting: queueLimit(settings),
    poolTimeLimit: poolTimeout * 1000,
    // PostgreSQL itself ends a statement after its time limit.
    maxSilence: statementTimeout * 1000 + GRACE_MS,
  };
  // Without a limit on waits for locks one that waits would hold up the others.
  if (!(hasSessionOptions && limitsLockWaits) || poolSize < MIN_SHARED_POOL_SIZE) {
    const all = executor(poolSize, 1);
    return {
      executors: { 'batched-read': all, 'batched-write': all, list: all, single: all, 'lock-waiters': all },
      pools: [all],
    };
  }
  const writeSessions = Math.floor((poolSize - READ_SESSIONS) / 3);
  const singleSessions = poolSize - READ_SESSIONS - writeSessions;
  const session = { ...SESSION, lock_timeout: String(LOCK_TIMEOUT_MS) };
  const list = executor(READ_SESSIONS, READ_DEPTH, session);
  // The plan of a write is kept, and may have been made when the table was empty: by index all the same.
  const write = executor(writeSessions, WRITE_DEPTH, { ...session, enable_seqscan: 'off' });
  const single = executor(singleSessions, 1);
  return {
    executors: {
      'batched-read': new Batcher(list, { ...options, areWrites: false, maxBatches: 1 }),
      'batched-write': new Batcher(write, { ...options, areWrites: true, maxBatches: writeSessions }),
      list,
      single,
      'lock-waiters': createLockWaiters(single, { ...options, maxInProgress: Math.ceil(singleSessions / 3) }),
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
