import { LEFT_OUT as LEFT_OUT_OF_DISTRIBUTED } from '../distributed/left-out.ts';
import type { LeftOut } from '../suites/reaching-postgres.ts';

/** The tests that do not run over Citus, and the reason. */
export const LEFT_OUT: LeftOut = {
  ...LEFT_OUT_OF_DISTRIBUTED,
  'test/engine/{distributed-tables,transaction-conflicts}.test.ts':
    'create triggers, which Citus does not have on distributed tables',
  'test/users/deep-page.test.ts':
    'hold a lock at one node, and a statement that waits for it runs at another one',
};
