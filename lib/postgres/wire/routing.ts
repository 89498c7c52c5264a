import type { Settings } from '../../settings/settings.ts';
import { Batcher } from '../batching/batcher.ts';
import { engineProfile } from '../engine-profile.ts';
import { clientConfig, SESSION } from '../hosts/connection-config.ts';
import type { Hosts } from '../hosts/hosts.ts';
import type { Session } from '../hosts/session.ts';
import type { Executors } from '../sender.ts';
import { LockWaiters } from './lock-waiters.ts';
import { SessionExecutor } from './session-executor.ts';

/** The executor of each kind of statement, and those of them that have sessions. */
type OpenedExecutors = { readonly executors: Executors; readonly pools: readonly SessionExecutor[] };

/** A short statement that waits longer for a lock moves to `LockWaiters`, because other statements wait behind it. */
const LOCK_TIMEOUT_MS = 20;

/** A response may arrive so much later than PostgreSQL sent it. */
const GRACE_MS = 100;

/** With a smaller pool, each statement has a session to itself. */
const MIN_SHARED_POOL_SIZE = 4;

/** One session for reads keeps a PostgreSQL process busy. More of them are not faster. */
const READ_SESSIONS = 1;
const READ_DEPTH = 64;

/** Each write waits for the disk. Few share a session, so that none waits long behind one that waits for a lock. */
const WRITE_DEPTH = 3;

/** Maximum number of statements that wait for an executor. With more, the last ones would reach their time limit. */
export function maxWaitingStatements({ poolSize }: Pick<Settings['postgres'], 'poolSize'>): number {
  return poolSize * 32;
}

/** Opens the executors. Reads share one session, and writes a third of the others. The rest have one statement each. */
export function openExecutors(
  settings: Settings['postgres'],
  hosts: Hosts,
  watch: (session: Session) => void,
): OpenedExecutors {
  const { poolSize, pooler, poolTimeout, statementTimeout } = settings;
  const { hasSessionOptions, limitsLockWaits } = engineProfile(settings);
  const options = {
    hosts,
    watch,
    areNamed: pooler === 'none',
    maxWaiting: maxWaitingStatements(settings),
    poolTimeLimit: poolTimeout * 1000,
    // PostgreSQL itself ends a statement after its time limit.
    maxSilence: statementTimeout * 1000 + GRACE_MS,
  };
  const open = (maxSessions: number, depth: number, session = SESSION) => {
    const timeout = hasSessionOptions && { statement_timeout: statementTimeout * 1000 };
    const config = { ...clientConfig(settings, session), ...timeout };
    return new SessionExecutor(config, { ...options, maxSessions, depth });
  };

  // Without a limit on lock waits, a statement that waits for a lock would hold up the others of its session.
  if (!(hasSessionOptions && limitsLockWaits) || poolSize < MIN_SHARED_POOL_SIZE) {
    const all = open(poolSize, 1);
    return {
      executors: { 'batched-read': all, 'batched-write': all, list: all, single: all, 'lock-waiters': all },
      pools: [all],
    };
  }
  const writeSessions = Math.floor((poolSize - READ_SESSIONS) / 3);
  const singleSessions = poolSize - READ_SESSIONS - writeSessions;
  const session = { ...SESSION, lock_timeout: String(LOCK_TIMEOUT_MS) };
  const list = open(READ_SESSIONS, READ_DEPTH, session);
  const write = open(writeSessions, WRITE_DEPTH, session);
  const single = open(singleSessions, 1);
  return {
    executors: {
      'batched-read': new Batcher(list, { ...options, areWrites: false, maxBatches: 1 }),
      'batched-write': new Batcher(write, { ...options, areWrites: true, maxBatches: writeSessions }),
      list,
      single,
      'lock-waiters': new LockWaiters(single, { ...options, maxInProgress: Math.ceil(singleSessions / 3) }),
    },
    pools: [list, write, single],
  };
}
