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

/** A call that logs an event, with the name of the event. */
const LOGGED =
  /(?:\.(?:debug|info|warning|error)\(|log\[level\]\(|new FailureLog\(log,|#writeCounted\(|#write\(\s*'\w+',)\s*'([a-z]+(?:_[a-z]+)*)'/g;

test.each(['infra/docs/operate.md', 'infra/observability/README.md'])(
  '%s lists every event of the log',
  (name) => {
    const sources = files
      .filter((file) => /^(lib|host|handlers)\/(?!development).*\.ts$/.test(file))
      .map((file) => readFileSync(new URL(file, ROOT), 'utf8'));
    const events = new Set(
      sources.flatMap((source) => [...source.matchAll(LOGGED)].map(([, event]) => event)),
    );
    const rows = readFileSync(new URL(name, ROOT), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, event]) => event),
    );

    expect(events.size).toBeGreaterThan(32);
    expect([...events].filter((event) => !listed.includes(event))).toEqual([]);
  },
);
