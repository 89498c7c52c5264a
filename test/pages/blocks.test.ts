import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSettings } from '../../lib/settings/settings.ts';
import { blockOf, blocksIn } from '../stage/page-blocks.ts';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const filesOf = (pattern: string) =>
  globSync(pattern, { cwd: ROOT, exclude: (name) => name === 'node_modules' });

const PAGES = ['README.md', 'CONTRIBUTING.md', 'RELEASING.md', ...filesOf('infra/**/*.md')];

/** The blocks that no test runs, by their page, heading and language, and the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'README.md, Try it, sh': 'test/lifecycle/fresh-clone.sh runs them, in a clone',
  'RELEASING.md, Release, sh': 'need Docker, a day, and a tag that everybody sees',
  'infra/kubernetes/README.md, Build and push the image, sh': 'need Docker and a registry',
  'infra/lambda/README.md, First deployment, sh':
    'need an account of AWS; the suite lambda synthesizes the app',
  'infra/docs/operate.md, Build and start, sh': 'need Docker',
};

test('every line of three backquotes begins or ends a block that is found', () => {
  const fences = (page: string) => textOf(page).match(/^\s*(?:```|~~~)/gm) ?? [];

  expect(PAGES.filter((page) => fences(page).length !== 2 * blocksIn(page).length)).toEqual([]);
});

test('every block is run by a test that gets it, or is named with the reason why not', () => {
  const calls = filesOf('test/**/*.ts').flatMap((file) => [
    ...textOf(file).matchAll(/blocks?Of\(\s*'([^']+)'(?:,\s*'([^']+)')?/g),
  ]);
  const run = new Set(calls.map(([, page, place]) => (place ? `${page}, ${place}` : page)));
  const names = PAGES.flatMap((page) =>
    blocksIn(page).map(({ heading, language }) => [
      page,
      `${page}, ${heading}`,
      `${page}, ${heading}, ${language}`,
    ]),
  );
  const notRun = names.filter((all) => !all.some((name) => run.has(name))).map((all) => all[2]);

  expect(names.length).toBeGreaterThan(55);
  expect([...new Set(notRun)].toSorted()).toEqual(Object.keys(NOT_RUN).toSorted());
});

test('the service accepts the settings of the page for `docker run`', () => {
  const lines = blockOf('infra/docs/operate.md', 'Build and start, env').trimEnd().split('\n');
  const settings = readSettings(Object.fromEntries(lines.map((line) => line.split(/=(.*)/s))));

  expect(settings).toMatchObject({ unknown: [], otel: { enabled: false } });
});
