import { become, runChosen } from '../stage/run-chosen.ts';
import { SUITES } from './suites.ts';

// npm run suite -- <name>: the tests that need more than npm test.
const choices = Object.entries(SUITES).map(
  ([name, { prepare = 'true', runBy = 'exec vitest', ...suite }]) => [
    name,
    {
      ...suite,
      run: (words: readonly string[]) => become(`${prepare} && ${runBy} run --mode ${name}`, words),
    },
  ],
);
await runChosen('suite', Object.fromEntries(choices));
