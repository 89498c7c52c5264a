import { defineConfig } from 'vitest/config';

/** The client of `infra/client`, as it is packed, against the service. */
export default defineConfig({
  test: {
    include: ['test/client/*.test.ts'],
    globalSetup: ['test/stage/postgres.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
