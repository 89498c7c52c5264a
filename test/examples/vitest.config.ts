import { defineConfig } from 'vitest/config';

/** What lies in `infra/examples/`, started as it stands. */
export default defineConfig({
  test: {
    include: ['test/examples/*.test.ts'],
    globalSetup: ['test/stage/postgres.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
