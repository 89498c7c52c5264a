import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/accept/**',
      'test/client/**',
      'test/monitoring/**',
      'test/container/**',
      'test/examples/**',
      'test/pooled/**',
      'test/restore/**',
      'test/upgrade/**',
      '**/node_modules/**',
    ],
    globalSetup: ['test/stage/postgres.ts'],
    // Processes, not threads: the tests send signals, and end in ways that would take a thread's neighbours along.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    reporters: ['default', './test/stage/closing-line.ts'],
    coverage: { include: ['lib/**', 'handlers/**', 'host/**'] },
  },
});
