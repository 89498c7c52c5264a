import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { proofRow } from './proof-row.ts';

/**
 * Ends the output of a run with `N passed, N failed`, and the number of skipped tests if there are any. Before it is
 * one line per failure, `failed: ` and its name, because a service under test may have logged much since, and one line
 * per test that passed only at its second try, `tried again: ` and the error of the first.
 */
export default class ClosingLine implements Reporter {
  // A run counts as failed until it has ended in order, because a set-up that throws ends it early.
  #line = '0 passed, 1 failed';
  #failures: readonly string[] = ['failed: the run did not end in order'];
  #retried: readonly string[] = [];

  onInit(): void {
    // The report on coverage is written after the end of the run, and nothing is written after `exit`.
    process.on('exit', () => {
      const figure = `${this.#line} in ${Math.round(process.uptime())} s`;
      const row = process.env.PROOF_COMMAND ? [proofRow(figure, '0 failed')] : [];
      process.stdout.write([...this.#retried, ...this.#failures, ...row, this.#line, ''].join('\n'));
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (wanted: string) => tests.filter((test) => test.result().state === wanted).length;
    const passed = count('passed');
    const skipped = count('skipped');
    this.#failures = [
      ...tests.flatMap(failureOfTest),
      ...modules.flatMap(failuresOutsideTests),
      ...unhandledErrors.map((error) => line('failed', 'an unhandled error', error)),
    ];
    this.#retried = tests.flatMap(secondTryOfTest);
    if (passed + this.#failures.length === 0) {
      process.exitCode = 1;
      this.#failures = ['failed: no test was found'];
    }
    const skips = skipped > 0 ? `, ${skipped} skipped` : '';
    this.#line = `${passed} passed, ${this.#failures.length} failed${skips}`;
  }
}

function failureOfTest(test: TestCase): string[] {
  const { state, errors } = test.result();
  if (state === 'passed' || state === 'skipped') return [];
  // A pending test never ended.
  return [line('failed', nameOf(test), errors?.[0] ?? 'it did not end')];
}

function secondTryOfTest(test: TestCase): string[] {
  const { state, errors } = test.result();
  return state === 'passed' && errors?.[0] ? [line('tried again', nameOf(test), errors[0])] : [];
}

/** A file that does not load, or a failing hook of a suite. */
const failuresOutsideTests = (module: TestModule): string[] =>
  [module, ...module.children.allSuites()].flatMap((suite) =>
    suite.errors().map((error) => line('failed', module.relativeModuleId, error)),
  );

const nameOf = (test: TestCase) => `${test.module.relativeModuleId} > ${test.fullName}`;

const line = (what: string, name: string, error: unknown) => `${what}: ${name}: ${firstLines(error)}`;

/** The first lines of a message and of its cause's. Those of a failing property have the seed and the counterexample. */
function firstLines(error: unknown): string {
  if (!(error instanceof Object && 'message' in error)) return String(error);
  const lines = String(error.message).split('\n', 3).join(' ').slice(0, 1000);
  return 'cause' in error && error.cause ? `${lines}: ${firstLines(error.cause)}` : lines;
}
