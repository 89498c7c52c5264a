import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/container/*.test.ts'],
    // One after the other: they measure the time of a start.
    fileParallelism: false,
    pool: 'forks',
    retry: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
