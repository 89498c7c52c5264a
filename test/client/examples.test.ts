import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startAcceptable } from '../accept/stage.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { blocksOf } from '../stage/page-blocks.ts';
import { openPrograms } from './programs.ts';

const CLIENT = join(import.meta.dirname, '../../infra/client');
const RUNTIMES = join(import.meta.dirname, 'runtimes/node_modules');

/** The installed runtimes: the name of each, and the arguments that run a program in it. */
const runtimes = [
  { name: `Node ${process.versions.node}`, words: [process.execPath] },
  {
    name: 'Node with only what the README lists',
    words: [
      ...[process.execPath, '--no-warnings', '--experimental-vm-modules'],
      join(import.meta.dirname, 'runtimes/listed-only.mjs'),
    ],
  },
  ...installed('Node 20', 'node-20/bin/node'),
  ...installed('Bun', '@oven/bun-*/bin/bun', 'run'),
  ...installed('Deno', '@deno/*/deno', 'run', '--allow-net', '--no-prompt'),
];

function installed(name: string, pattern: string, ...words: readonly string[]) {
  const paths = globSync(pattern, { cwd: RUNTIMES });
  return paths.map((path) => ({ name, words: [join(RUNTIMES, path), ...words] }));
}

const blocks = blocksOf('infra/client/README.md');
/** The client that the first example creates. Every example begins with it. */
const [CREATION = ''] = /^.*?^\}\);\n/ms.exec(blocks[0] ?? '') ?? [];

const EXAMPLES = blocks.map((code, index) => ({
  title: `${index + 1}`,
  file: `example-${index + 1}`,
  program: index === 0 ? code : CREATION + code,
  /** The text after `//` of a call that prints, with several lines for several calls. */
  prints: [...code.matchAll(/console\.log\(.*?\/\/ (.*)$/gm)].flatMap(([, lines = '']) =>
    lines.split(' // '),
  ),
}));

const service = forAllTests(startAcceptable);
const programs = openPrograms({
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
});

// As a new user does: the client is installed from its archive.
beforeAll(async () => {
  const npm = (cwd: string, ...words: readonly string[]) =>
    execFileSync('npm', words, { cwd, encoding: 'utf8' }).trim();
  // The suite has built the client, and other tests use the build.
  const archive = npm(CLIENT, 'pack', '--ignore-scripts', '--silent', '--pack-destination', programs.folder);
  npm(programs.folder, 'install', '--silent', '--no-audit', '--no-fund', programs.pathOf(archive));
  for (const { file, program } of EXAMPLES)
    programs.write(
      `${file}.ts`,
      program
        .replaceAll('https://users.example.com', service.url)
        .replaceAll('https://identity.example.com/oauth2/token', service.credentials.ACCEPT_TOKEN_URL),
    );
  await programs.run(process.execPath, join(CLIENT, 'node_modules/.bin/tsc'), '-p', '.');
  return programs.remove;
});

beforeEach(() => service.database.query('DELETE FROM users', 'DELETE FROM idempotency_keys'));

test.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'the client is tested in five runtimes',
  () => {
    const names = runtimes.map(({ name }) => name);

    expect(names).toEqual([
      expect.stringMatching(/^Node 24/),
      expect.stringMatching(/^Node with/),
      'Node 20',
      'Bun',
      'Deno',
    ]);
  },
);

describe.each(runtimes)('in $name', ({ words: [program = '', ...words] }) => {
  test.each(EXAMPLES)('example $title prints the documented lines', async ({ file, prints }) => {
    const printed = await programs.run(program, ...words, `${file}.js`);

    expect(printed.split('\n').slice(0, -1)).toEqual(prints);
  });
});
