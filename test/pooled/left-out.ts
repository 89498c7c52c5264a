import type { LeftOut } from '../suites/reaching-postgres.ts';

/** The tests that do not run behind a pooler, and the reason. */
export const LEFT_OUT: LeftOut = {
  'test/engine/page-statements.test.ts': 'connect as another role, and replace the schema',
  'test/engine/{ending-connections,engines,batched-writes,migrations,pipelined-statements,time-limits,used-sessions}.test.ts':
    'test sessions of their own; migrations behind PgBouncer are in test/lambda/pooler.ts',
  'test/engine/{connections,dead-connections,engine-events}.test.ts':
    'count sessions, or query them from another',
  'test/engine/postgres-{refuses,locked}.test.ts':
    'PgBouncer receives the errors of connecting, and has fewer connections than the service',
  'test/engine/database-upkeep.test.ts': 'settings of a database apply to the sessions of the pooler',
  'test/{engine/several-hosts,changes/postgres-unavailable}.test.ts':
    'start hosts of their own, without PgBouncer',
};
