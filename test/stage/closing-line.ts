import type { Reporter, TestModule } from 'vitest/node';

/** Ends the output of a run with `N passed, N failed`, and the number of skipped tests if there are any. */
export default class ClosingLine implements Reporter {
  // Until a run has ended in order it counts as failed: a set-up that throws ends it early.
  #line = '0 passed, 1 failed';

  onInit(): void {
    // The report on coverage is written after the end of the run; at the exit nothing is.
    process.on('exit', () => process.stdout.write(`${this.#line}\n`));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => test.result().state),
    );
    const count = (wanted: string) => tests.filter((state) => state === wanted).length;
    const passed = count('passed');
    const skipped = count('skipped');
    // A test that is still pending never ended.
    const failed = tests.length - passed - skipped + failuresOutsideTests(modules) + unhandledErrors.length;
    const isEmpty = passed + failed === 0;
    if (isEmpty) process.exitCode = 1;
    this.#line = `${passed} passed, ${isEmpty ? 1 : failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  }
}

// A file that does not load, or a hook around a suite that throws.
function failuresOutsideTests(modules: readonly TestModule[]): number {
  const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
  return suites.reduce((sum, suite) => sum + suite.errors().length, 0);
}
