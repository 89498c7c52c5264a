import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SUITES } from '../suites/suites.ts';

/** Carries out an experiment with this `run` in a process of its own, and sends a signal once it has printed `waits`. */
async function carryOut(run: string): Promise<{ readonly code: number | null; readonly printed: string }> {
  const program = `import { carryOut } from ${JSON.stringify(join(import.meta.dirname, 'experiment.ts'))};
    const options = { times: { type: 'string', default: '1' } };
    await carryOut({ options, async run({ options, print, defer }) { ${run} } }, ['--times', '3']);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    printed += part;
    if (part.includes('waits')) child.kill('SIGTERM');
  });
  const [code] = await once(child, 'close');
  return { code, printed };
}

const DEFER = "defer(() => print('first')); defer(async () => print('last'));";

test.each([
  ['a kept promise ends with 0', `${DEFER} print(options.times); return true;`, 0, '3\nlast\nfirst\n'],
  ['a broken promise ends with 1', `${DEFER} return false;`, 1, 'last\nfirst\n'],
  ['a failure ends with 1', `${DEFER} throw new Error();`, 1, 'last\nfirst\n'],
  [
    'a signal ends with 1',
    `${DEFER} print('waits'); await new Promise((done) => setTimeout(done, 60_000));`,
    1,
    'waits\nlast\nfirst\n',
  ],
])('%s, and the latest is undone first', async (_, run, code, printed) => {
  expect(await carryOut(run)).toEqual({ code, printed });
});

const FOLDER = join(import.meta.dirname, 'experiments');

// Here, so that a build does not count to the time of the first test.
const experiments = await Promise.all(
  readdirSync(FOLDER).map(async (file) => [file, (await import(join(FOLDER, file))).experiment] as const),
);

test.each(experiments)('%s has an experiment with a promise', (_, { promise }) => {
  expect(promise).toMatch(/\.$/);
});

test('every suite and experiment has a row with its figure and commit in test/README.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const rows = page.match(/^\| `npm run [^|]+\|[^|]+\|[^|]+\| [0-9a-f]{8} \|$/gm) ?? [];
  const wanted = [
    ...Object.keys(SUITES).map((name) => `suite -- ${name}`),
    ...experiments.map(([file]) => `lab -- ${file.replace('.ts', '')}`),
    'bench',
    'test',
  ];

  expect(wanted.filter((name) => !rows.some((row) => row.startsWith(`| \`npm run ${name}`)))).toEqual([]);
});
