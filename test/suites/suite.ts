import { become, runChosen } from '../stage/run-chosen.ts';
import { SUITES } from './suites.ts';

// npm run suite -- <name>: the tests that need more than npm test.
const choices = Object.entries(SUITES).map(([name, { prepare, runBy = 'exec vitest', ...suite }]) => {
  const preparation = prepare ? `echo 'Installing the packages of the suite ${name}' && ${prepare} && ` : '';
  const run = (words: readonly string[]) => become(`${preparation}${runBy} run --mode ${name}`, words);
  return [name, { ...suite, run }];
});
await runChosen('suite', Object.fromEntries(choices));
