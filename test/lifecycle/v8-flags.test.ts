import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const MODULE = pathToFileURL(join(import.meta.dirname, '../../host/v8-flags.ts')).href;

/** The number that a program prints at its end, in a process with a small young generation. */
function resultOf(preparation: string, program: string): number {
  const source = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { setHeapFlags } from '${MODULE}';
    const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space');
    ${preparation};
    ${program}`;
  // Another thread of a busy machine might compile `make` after the measurement, and V8 would decide too late where its
  // objects are allocated.
  const flags = ['--max-semi-space-size=1', '--no-concurrent-recompilation'];
  const words = [...flags, '--input-type=module', '--eval', source];
  return Number(execFileSync(process.execPath, words, { encoding: 'utf8' }));
}

/** Always holds the same 20 MB, of which each part lives until its memory is old: the most that the old space takes. */
const HOLDS = `
  const held = [];
  let most = 0;
  for (let n = 0; n < 300_000; n += 1) {
    held[n % 20_000] = Array.from({ length: 128 }, () => n);
    if (n % 1000 === 0) most = Math.max(most, old().space_size);
  }
  console.log(most);`;

/** After long-lived objects were created: the bytes of later objects that are in the old space at once. */
const MAKES_MORE = `
  const make = (n) => ({ n, list: [n, n, n, n] });
  const held = [];
  for (let n = 0; n < 300_000; n += 1) held.push(make(n));
  const grown = [];
  for (let part = 0; part < 9; part += 1) {
    const before = old().space_used_size;
    for (let n = 0; n < 1000; n += 1) held[n] = make(n);
    grown.push(old().space_used_size - before);
  }
  // A collection can fall into either part.
  console.log(grown.sort((one, other) => one - other)[4]);`;

test('the size of the heap stays close to that of its live objects', () => {
  expect(resultOf('', HOLDS)).toBeGreaterThan(1.5 * resultOf('setHeapFlags()', HOLDS));
});

test('objects of requests are not allocated in the old space, after any long-lived objects of the start', () => {
  expect(resultOf('', MAKES_MORE)).toBeGreaterThan(100_000);
  expect(resultOf('setHeapFlags()', MAKES_MORE)).toBeLessThan(10_000);
});
