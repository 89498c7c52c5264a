import { LEFT_OUT as LEFT_OUT_OF_DISTRIBUTED } from '../distributed/left-out.ts';
import type { LeftOut } from '../stage/reaching-postgres.ts';

/** The tests that do not run over Citus, and the reason. */
export const LEFT_OUT: LeftOut = {
  ...LEFT_OUT_OF_DISTRIBUTED,
  'test/{changes/{history,settling},idempotency/idempotency}.test.ts':
    'change rows by statements that Citus refuses',
  'test/engine/{distributed-tables,transaction-conflicts}.test.ts':
    'create triggers, which Citus does not have on distributed tables',
  'test/engine/database-encoding.test.ts': 'have databases whose nodes would have two encodings',
  'test/idempotency/waiting.test.ts': 'lock rows and tables, and look for waiting statements, at one node',
  'test/users/{email-migration,external-id-migration}.test.ts':
    'drop several indexes in one command, and lock tables at one node',
  'test/users/deep-page.test.ts': 'look for running statements at one node',
};
