import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Experiment } from './experiment.ts';

const FOLDER = join(import.meta.dirname, 'experiments');

// Here, so that a build does not count to the time of the first test.
const experiments = await Promise.all(
  readdirSync(FOLDER).map(async (file) => {
    const { experiment }: { experiment: Experiment } = await import(join(FOLDER, file));
    return [file, experiment] as const;
  }),
);

test.each(experiments)('%s has the experiment of its name, with a promise', (file, { name, promise }) => {
  expect(`${name}.ts`).toBe(file);
  expect(promise).toMatch(/^[A-Z].*\.$/);
});
