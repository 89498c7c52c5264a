import { defineConfig } from 'vitest/config';

/** `npm run accept` against deployments that hold, and against broken ones. */
export default defineConfig({
  test: {
    include: ['test/accept/*.test.ts'],
    globalSetup: ['test/stage/postgres.ts'],
    pool: 'forks',
    maxWorkers: 2,
    maxConcurrency: 4,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
