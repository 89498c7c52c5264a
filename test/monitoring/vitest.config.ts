import { defineConfig } from 'vitest/config';

/** Alarms and dashboard, with a real Prometheus. */
export default defineConfig({
  test: {
    include: ['test/monitoring/*.test.ts'],
    globalSetup: ['test/stage/postgres.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
