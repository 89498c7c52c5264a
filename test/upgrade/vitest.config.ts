import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/upgrade/*.test.ts'],
    globalSetup: ['test/stage/postgres.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
