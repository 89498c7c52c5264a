import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/restore/*.test.ts'],
    globalSetup: ['test/restore/postgres.ts'],
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
