import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

const files = globSync('{handlers,lib,host,infra,events,test}/**', {
  cwd: ROOT,
  exclude: (name) => name === 'node_modules',
});

const PAGES = [
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'infra/kubernetes/README.md',
  ...globSync('{lib,host}/**/README.md', { cwd: ROOT }),
];

test.each(PAGES)('every file and folder that %s names exists', (page) => {
  const named = [
    ...readFileSync(new URL(page, ROOT), 'utf8').matchAll(
      /`([\w./-]+\.ts|(?:handlers|lib|host|infra|events|test)\/[\w./-]*)`/g,
    ),
  ];
  const missing = named.map(([, name = '']) => name).filter((name) => !isThere(name.replace(/\/$/, '')));

  expect(named).not.toEqual([]);
  expect(missing).toEqual([]);
});

/** The whole path, or its end. */
function isThere(name: string): boolean {
  return files.some((file) => `/${file}`.endsWith(`/${name}`));
}
