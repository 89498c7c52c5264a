import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Experiment } from './experiment.ts';

const FOLDER = join(import.meta.dirname, 'experiments');

test.each(readdirSync(FOLDER))('%s has the experiment of its name, with a promise', async (file) => {
  const { experiment }: { experiment: Experiment } = await import(join(FOLDER, file));

  expect(`${experiment.name}.ts`).toBe(file);
  expect(experiment.promise).toMatch(/^[A-Z].*\.$/);
});
