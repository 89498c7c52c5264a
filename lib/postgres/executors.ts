import type { Settings } from '../settings/settings.ts';
import { Batcher } from './batcher.ts';
import { LockWaiters } from './lock-waiters.ts';
import type { Executors } from './retrying-sender.ts';
import { engineProfile } from './sessions/engine-profile.ts';
import type { SessionPool } from './sessions/session-pool.ts';

/** With a smaller pool, each statement has a session to itself. */
const MIN_SHARED_POOL_SIZE = 4;

/** One session for reads keeps a PostgreSQL process busy. More of them are not faster. */
const READ_SESSIONS = 1;
const READ_DEPTH = 64;
/** While PostgreSQL carries out one batch of reads, the next one is on its way. */
const READ_BATCHES = 2;

/** Each write waits for the disk. Few share a session, so that none waits long behind one that waits for a lock. */
const WRITE_DEPTH = 3;

/** Creates the executor of each kind: see "Sessions" in README.md.  */
export function createExecutors(settings: Settings['postgres'], pool: SessionPool): Executors {
  const { poolSize, poolTimeout } = settings;
  const readiness = pool.createExecutor(1, 1);
  // Without the session's `lock_timeout`, a statement that waits for a lock would hold up the others of its session.
  if (!engineProfile(settings).hasOwnSessions || poolSize < MIN_SHARED_POOL_SIZE) {
    const all = pool.createExecutor(poolSize, 1);
    return {
      'batched-read': all,
      'batched-write': all,
      list: all,
      'own-session': all,
      'lock-waiters': all,
      readiness,
    };
  }
  const writeSessions = Math.floor((poolSize - READ_SESSIONS) / 3);
  const ownSessions = poolSize - READ_SESSIONS - writeSessions;
  const list = pool.createExecutor(READ_SESSIONS, READ_DEPTH);
  const write = pool.createExecutor(writeSessions, WRITE_DEPTH);
  const ownSession = pool.createExecutor(ownSessions, 1);
  return {
    'batched-read': new Batcher(list, { areWrites: false, maxBatches: READ_BATCHES, poolTimeout }),
    'batched-write': new Batcher(write, { areWrites: true, maxBatches: writeSessions, poolTimeout }),
    list,
    'own-session': ownSession,
    'lock-waiters': new LockWaiters(ownSession, Math.ceil(ownSessions / 3)),
    readiness,
  };
}
