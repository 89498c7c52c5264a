import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runChosen } from '../stage/run-chosen.ts';
import { carryOut, type Experiment } from './experiment.ts';

// npm run lab -- <name>: experiments, each of which keeps or breaks a promise, or measures what a promise rests on. Each is a
// file of the folder experiments/. Only the one that is carried out is loaded.
const FOLDER = join(import.meta.dirname, 'experiments');
const names = readdirSync(FOLDER).map((file) => file.replace('.ts', ''));
const chosen = names.filter((name) => name === process.argv[2]);
const experiments = (chosen.length > 0 ? chosen : names).map(async (name) => {
  const { experiment }: { experiment: Experiment } = await import(join(FOLDER, `${name}.ts`));
  const { promise: proves, run: _, ...more } = experiment;
  return [name, { ...more, proves, run: (words: readonly string[]) => carryOut(experiment, words) }] as const;
});
await runChosen('lab', Object.fromEntries(await Promise.all(experiments)));
