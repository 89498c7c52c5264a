import { defineConfig, mergeConfig } from 'vitest/config';
import usual from '../../vitest.config.ts';
import { filesReachingPostgres } from '../stage/reaching-postgres.ts';
import { LEFT_OUT } from './left-out.ts';

/**
 * The tests that reach PostgreSQL once more, with the habits of a distributed engine: see `test/stage/distributed.ts`. Not
 * those of what the engine has to do for the service: to stop a statement whose client has left, to limit a wait.
 */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      env: { TEST_POSTGRES_ENGINE: 'distributed' },
      testTimeout: 60_000,
      include: [...filesReachingPostgres(LEFT_OUT)],
    },
  }),
);
