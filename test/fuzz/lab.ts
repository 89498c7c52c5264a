import { execve } from 'node:process';
import { parseArgs } from 'node:util';

// npm run lab -- fuzz [--cases 100000] [--seed <n>] [--only <title>]: fuzz.test.ts with more cases. A run
// with the same seed and number of cases has the same requests.

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '100000' },
    seed: { type: 'string' },
    only: { type: 'string' },
  },
});
const environment = {
  ...process.env,
  FUZZ_CASES: values.cases,
  ...(values.seed && { FUZZ_SEED: values.seed }),
};
const only = values.only ? ['-t', values.only] : [];
execve?.('/bin/sh', ['sh', '-c', 'exec vitest run test/fuzz/fuzz.test.ts "$@"', 'sh', ...only], environment);
