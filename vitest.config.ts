import { FileOrder } from './test/stage/file-order.ts';
import { SUITES, testsOf, type ViteUserConfig } from './test/suites/suites.ts';

/** The tests of `npm test`, or those of the suite that `--mode` names. */
export default ({ mode }: { readonly mode: string }): ViteUserConfig => ({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/{accept,benchmark/guard,browser,citus,client,monitoring,container,examples,pooled,project,restore,upgrade,faults}/**',
      '**/node_modules/**',
    ],
    globalSetup: ['test/stage/postgres.ts'],
    // Processes, not threads, because a test that sends a signal or ends its process would end other threads, too.
    pool: 'forks',
    maxWorkers: 4,
    // The files of a process share its modules. Loading them again for each file took half of the CPU time.
    isolate: false,
    // One broken line fails many tests. The first failures name its sentence.
    sequence: { sequencer: FileOrder },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/stage/closing-line.ts'],
    ...(mode in SUITES && testsOf(mode)),
  },
});
