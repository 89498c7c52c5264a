import type { LeftOut } from '../suites/reaching-postgres.ts';

/** The tests that do not run with the behaviour of a distributed engine, and the reason. */
export const LEFT_OUT: LeftOut = {
  'test/engine/page-statements.test.ts': 'connect as another role, and replace the schema',
  'test/engine/{ending-connections,batched-writes,migrations,pipelined-statements,time-limits,engine-events,used-sessions}.test.ts':
    'test locks, options and limits of sessions',
  'test/engine/postgres-locked.test.ts': 'test a limit on the wait for a lock',
  'test/changes/order.test.ts': 'waits decide the order, and a conflict can roll back the first one',
  'test/changes/set-back-sequence.test.ts':
    'writes must not read the head of the feed on an engine that is serializable',
  'test/engine/database-upkeep.test.ts': 'rebuild an index, and test options of sessions',
  'test/engine/dead-connections.test.ts': 'read which statements are running',
};
