import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const MODULE = pathToFileURL(join(import.meta.dirname, '../../host/heap.ts')).href;

/**
 * In a process of its own, which always holds the same 20 MB of which each part lives until its memory is old: the most
 * megabytes that V8's old generation takes.
 */
function mostOfOldGeneration(preparation: string): number {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { keepHeapSmall } from '${MODULE}';
    ${preparation};
    const taken = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_size;
    const held = [];
    let most = 0;
    for (let n = 0; n < 300_000; n += 1) {
      held[n % 20_000] = Array.from({ length: 128 }, () => n);
      if (n % 1000 === 0) most = Math.max(most, taken());
    }
    console.log(most / 1e6);`;
  const words = ['--max-semi-space-size=1', '--input-type=module', '--eval', program];
  return Number(execFileSync(process.execPath, words, { encoding: 'utf8' }));
}

test('the heap stays close to what lives in it', () => {
  expect(mostOfOldGeneration('')).toBeGreaterThan(2 * mostOfOldGeneration('keepHeapSmall()'));
});
