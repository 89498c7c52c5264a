import { runChosen } from '../stage/run-chosen.ts';
import { SUITES } from './suites.ts';

// npm run suite -- <name>: the tests that need more than npm test.
const choices = Object.entries(SUITES).map(
  ([name, { prepare = 'true', runBy = 'exec vitest', ...suite }]) => [
    name,
    { ...suite, command: `${prepare} && ${runBy} run --mode ${name}` },
  ],
);
runChosen('suite', Object.fromEntries(choices));
