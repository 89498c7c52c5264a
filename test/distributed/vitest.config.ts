import { defineConfig, mergeConfig } from 'vitest/config';
import usual from '../../vitest.config.ts';

const host = (name: string) => `test/host/${name}.test.ts`;

/**
 * The tests that reach PostgreSQL once more, with the habits of a distributed engine: see `test/stage/distributed.ts`. Not
 * those of what the engine has to do for the service: to stop a statement whose client has left, to limit a wait.
 */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [] } },
  defineConfig({
    test: {
      env: { TEST_POSTGRES_ENGINE: 'distributed' },
      include: [
        ...['batch*', 'changes', 'concurrency', 'email', 'full-name', 'idempotency', 'idempotency-key'].map(
          host,
        ),
        ...['list', 'list-cursors', 'list-filters', 'list-walk', 'preconditions', 'update'].map(host),
        ...[
          'postgres-away',
          'postgres-refuses',
          'timestamps',
          'transaction-conflicts',
          'several-servers',
        ].map(host),
        'test/handlers/operations.test.ts',
        'test/lib/database/engines.test.ts',
      ],
    },
  }),
);
