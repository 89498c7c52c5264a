import { FileOrder } from './test/stage/file-order.ts';
import { SUITES, testsOf, type ViteUserConfig } from './test/suites/suites.ts';

/** The tests of `npm test`, or those of the suite that `--mode` names. */
export default ({ mode }: { readonly mode: string }): ViteUserConfig => ({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/{accept,benchmark/guard,browser,citus,client,monitoring,container,examples,faults,pooled,project,restore,upgrade}/**',
      '**/node_modules/**',
    ],
    globalSetup: ['test/stage/postgres.ts'],
    // Processes, not threads, because a test that sends a signal or ends its process would end other threads, too.
    pool: 'forks',
    // Tests wait most of the time. A busy machine, or one with a quota, has enough to do with two files at once. There a
    // pause costs a test its time, and the closing lines name what passes at a second try.
    ...(shareOfProcessor() > 0.7 ? { maxWorkers: 6 } : { maxWorkers: 2, retry: 1 }),
    // The files of a process share its modules. Loading them again for each file took half of the CPU time.
    isolate: false,
    // One broken line fails many tests. The first failures name its sentence.
    sequence: { sequencer: FileOrder },
    // A test that waits for an event has a limit that tells a slow machine from a wait without end.
    testTimeout: 180_000,
    hookTimeout: 300_000,
    reporters: ['default', './test/stage/closing-line.ts'],
    ...(mode in SUITES && testsOf(mode)),
  },
});

/** The share of a processor that this process gets: 1 on a quiet machine, 0.5 with a quota of half a core. */
function shareOfProcessor(): number {
  const begun = performance.now();
  const before = process.cpuUsage();
  const used = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  while (used() < 100);
  return used() / (performance.now() - begun);
}
