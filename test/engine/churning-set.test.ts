import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ChurningSet } from '../../lib/churning-set.ts';

const MODULE = pathToFileURL(join(import.meta.dirname, '../../lib/churning-set.ts')).href;

/** In a process of its own: the megabytes that 100,000 members of 1 KB leave in V8's old space, 64 at a time. */
function leftInOldSpace(kind: string): number {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { ChurningSet } from '${MODULE}';
    const used = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size;
    const all = new ${kind}();
    const first = {};
    all.add(first);
    // An object that survives two garbage collections is old.
    gc();
    gc();
    all.delete(first);
    const before = used();
    const present = [];
    for (let n = 0; n < 100_000; n += 1) {
      all.delete(present[n % 64]);
      const member = Array.from({ length: 128 }, () => n);
      present[n % 64] = member;
      all.add(member);
    }
    console.log((used() - before) / 1e6);`;
  // With one thread the result does not depend on how busy the machine is.
  const options = ['--expose-gc', '--single-threaded-gc', '--max-semi-space-size=1'];
  // Without collections of the old space it contains everything that was ever moved there.
  const sizes = ['--max-old-space-size=4096', '--initial-old-space-size=1000'];
  const words = [...options, ...sizes, '--input-type=module', '--eval', program];
  return Number(execFileSync(process.execPath, words, { encoding: 'utf8' }));
}

describe('a set with changing members', () => {
  test('leaves no member to the collection of the old space, as a plain Set would', () => {
    expect(leftInOldSpace('Set')).toBeGreaterThan(50);
    expect(leftInOldSpace('ChurningSet')).toBeLessThan(5);
  });

  test('has its members in the order of insertion, once each, after any number of changes', () => {
    const all = new ChurningSet<number>();
    const expected = new Set<number>();
    for (let n = 0; n < 5000; n += 1) {
      all.add(n);
      expected.add(n);
      all.add(n);
      const leaving = n % 3 === 0 ? n : n - 100;
      expect(all.delete(leaving)).toBe(expected.delete(leaving));
    }

    expect([...all]).toEqual([...expected]);
    expect(all.size).toBe(expected.size);
  });

  test('continues with the remaining members after a deletion during iteration', () => {
    const all = new ChurningSet<number>();
    for (let n = 0; n < 10; n += 1) all.add(n);
    const seen: number[] = [];
    for (const n of all) {
      seen.push(n);
      all.delete(n + 1);
    }

    expect(seen).toEqual([0, 2, 4, 6, 8]);
  });
});
