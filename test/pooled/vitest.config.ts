import { defineConfig, mergeConfig } from 'vitest/config';
import usual from '../../vitest.config.ts';
import { filesReachingPostgres } from '../stage/reaching-postgres.ts';
import { LEFT_OUT } from './left-out.ts';

/** The tests that reach PostgreSQL once more, behind PgBouncer in transaction mode: see `test/stage/pooled.ts`. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      env: { TEST_POSTGRES_POOLER: 'transaction' },
      globalSetup: ['test/stage/pooled.ts'],
      testTimeout: 60_000,
      include: [...filesReachingPostgres(LEFT_OUT), 'test/pooled/*.test.ts'],
    },
  }),
);
