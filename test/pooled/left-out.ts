import type { LeftOut } from '../stage/reaching-postgres.ts';

/** What is not looked at behind a pooler. */
export const LEFT_OUT: LeftOut = {
  'test/engine/{ending-connections,engines,gathered-writes,migrations,shared-connections,split-messages,time-limits,waited-for,waits-for-locks}.test.ts':
    'about sessions of one’s own; migrations behind PgBouncer are in test/lambda/pooler.ts',
  'test/engine/{connections,dead-connections}.test.ts': 'sessions are counted, or asked about by another',
  'test/engine/postgres-{refuses,locked}.test.ts':
    'what PostgreSQL says to whoever connects PgBouncer hears; its connections are fewer than ours',
  'test/engine/database-upkeep.test.ts': 'what a database has set for sessions holds for those of the pooler',
  'test/{engine/several-servers,changes/postgres-away}.test.ts': 'servers of their own, without PgBouncer',
};
