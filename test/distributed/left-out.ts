import type { LeftOut } from '../stage/reaching-postgres.ts';

/** What is not looked at with the habits of a distributed engine: what it has to do for the service, or lacks. */
export const LEFT_OUT: LeftOut = {
  'test/engine/{ending-connections,gathered-writes,migrations,shared-connections,split-messages,time-limits,waited-for,waits-for-locks}.test.ts':
    'about locks, options and limits of sessions',
  'test/engine/postgres-locked.test.ts': 'to limit a wait for a lock',
  'test/changes/order.test.ts':
    'who comes first is told by waits, and a conflict may undo whoever came first',
  'test/engine/database-upkeep.test.ts': 'to build an index anew, and options of sessions',
  'test/engine/dead-connections.test.ts': 'to show which statements it runs',
};
