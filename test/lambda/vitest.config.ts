import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const OFFICIAL = join(import.meta.dirname, 'client/node_modules/aws-lambda-ric/index.mjs');

/** What npm test does with its own loop around the handlers, through the official one; and what needs more than Node. */
export default defineConfig({
  test: {
    include: [
      'test/parity/*.test.ts',
      'test/lambda/*.test.ts',
      'test/lambda/pooler.ts',
      'infra/lambda/*.test.ts',
    ],
    globalSetup: ['test/stage/postgres.ts'],
    pool: 'forks',
    maxWorkers: 2,
    env: { LAMBDA_RUNTIME_CLIENT: OFFICIAL },
    retry: 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/stage/closing-line.ts'],
  },
});
