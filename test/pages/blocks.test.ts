import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../../lib/settings/settings.ts';
import { blocksIn } from '../stage/page-blocks.ts';

const ROOT = join(import.meta.dirname, '../..');

const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'RELEASING.md'],
  ...globSync('infra/**/*.md', { cwd: ROOT, exclude: (name) => name === 'node_modules' }),
];

/** The blocks that no test runs, by their page, heading and language, and the reason. Commands are only parsed. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'README.md, Try it, sh': 'test/lifecycle/fresh-clone.sh runs them, in a clone',
  'RELEASING.md, Release, sh': 'need Docker, a day, and a tag that everybody sees',
  'infra/kubernetes/README.md, Build and push the image, sh': 'need Docker and a registry',
  'infra/lambda/README.md, First deployment, sh':
    'need an account of AWS; the suite lambda synthesizes the app',
  'infra/docs/operate.md, Build and start, sh': 'need Docker',
};

const sources = globSync('test/**/*.ts', { cwd: ROOT, exclude: (name) => name === 'node_modules' })
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');
/** Each call of a test that gets blocks to run them: the page, or the page and the place. */
const runByTests = new Set(
  Array.from(sources.matchAll(/blocks?Of\(\s*'([^']+)'(?:,\s*'([^']+)')?/g), ([, page, heading]) =>
    [page, heading].filter(Boolean).join(', '),
  ),
);

const blocks = PAGES.flatMap((page) => blocksIn(page).map((block) => ({ page, ...block })));
const nameOf = ({ page, heading, language }: (typeof blocks)[0]) => `${page}, ${heading}, ${language}`;

test('every line of three backquotes begins or ends a block that is found', () => {
  const count = (page: string) =>
    readFileSync(join(ROOT, page), 'utf8').match(/^\s*(?:```|~~~)/gm)?.length ?? 0;

  expect(blocks.length).toBeGreaterThan(55);
  expect(PAGES.filter((page) => count(page) !== 2 * blocksIn(page).length)).toEqual([]);
});

test('every block is run by a test, is a file of settings, or is named with the reason why not', () => {
  const others = blocks.filter((block) => {
    const { page, heading, language } = block;
    const isRun = [page, `${page}, ${heading}`, nameOf(block)].some((name) => runByTests.has(name));
    return !isRun && language !== 'env';
  });

  expect([...new Set(others.map(nameOf))].toSorted()).toEqual(Object.keys(NOT_RUN).toSorted());
});

describe.each(blocks.filter((block) => nameOf(block) in NOT_RUN))(
  '$page: the commands of $heading',
  ({ code }) => {
    test('are commands of bash', () => {
      expect(execFileSync('bash', ['-n'], { input: code, stdio: 'pipe' }).toString()).toBe('');
    });
  },
);

test.each(blocks.filter(({ language }) => language === 'env'))(
  'the settings of $page are accepted',
  ({ code }) => {
    const settings = Object.fromEntries(
      code
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/=(.*)/s)),
    );

    expect(readSettings(settings).unknown).toEqual([]);
  },
);
