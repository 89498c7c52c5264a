import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';

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
  ['a kept promise ends with 0', 'print(options.times); return true;', { code: 0, printed: '3\n' }],
  ['a broken promise ends with 1', 'return false;', { code: 1, printed: '' }],
  ['the latest is undone first', `${DEFER} return true;`, { code: 0, printed: 'last\nfirst\n' }],
  ['after a failure, too', `${DEFER} throw new Error();`, { code: 1, printed: 'last\nfirst\n' }],
  [
    'after a signal, too',
    `${DEFER} print('waits'); await new Promise((done) => setTimeout(done, 60_000));`,
    { code: 1, printed: 'waits\nlast\nfirst\n' },
  ],
])('%s', async (_, run, outcome) => {
  expect(await carryOut(run)).toEqual(outcome);
});
