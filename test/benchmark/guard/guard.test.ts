import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { growthOf, nodeMajor, readFigures, writeFigures } from './figures.ts';
import { type Figures, type Measured, measureAll } from './measure.ts';

const TIMEOUT_MS = 300_000;

let measured: Measured;

beforeAll(async () => {
  measured = await measureAll();
  if (process.env.GUARD_WRITES === 'true') writeFigures(measured);
}, TIMEOUT_MS);

test('no request costs a tenth more than is committed: `npm run lab -- guard` writes what each costs now', () => {
  const { node, workloads } = readFigures();

  expect(Object.keys(workloads)).toEqual(Object.keys(measured));
  expect(growthOf(workloads, measured, { isSameNode: node === nodeMajor })).toEqual([]);
});

describe('of a service that wastes, the workload and the figure are named', () => {
  /** What grows by this waste. */
  async function grown(waste: string): Promise<readonly string[]> {
    const preloaded = [join(import.meta.dirname, 'waste', waste)];
    const wasteful = await measureAll({ only: ['health', 'get'], preloaded });
    return growthOf(measured, wasteful, { isSameNode: true }).map((growth) => growth.replace(/ was .*/, ''));
  }

  test('a statement', { timeout: TIMEOUT_MS }, async () => {
    expect(await grown('statement.ts')).toEqual(
      expect.arrayContaining(['get: statements', 'get: bytesToPostgres']),
    );
  });

  test('promises', { timeout: TIMEOUT_MS }, async () => {
    expect(await grown('promises.ts')).toEqual(expect.arrayContaining(['health: promises', 'get: promises']));
  });

  test('memory', { timeout: TIMEOUT_MS }, async () => {
    expect(await grown('memory.ts')).toEqual(['health: bytesAllocated', 'get: bytesAllocated']);
  });

  test('a header field, and a response in two pieces', { timeout: TIMEOUT_MS }, async () => {
    expect(await grown('response.ts')).toEqual(
      expect.arrayContaining(['health: writesToClient', 'health: bytesToClient', 'get: writesToClient']),
    );
  });
});

test('a growth is reported with both figures; for another Node the counts of V8 are left out', () => {
  const before = { get: figures({ statements: 1, promises: 20, bytesToClient: 500 }) };
  const now = { get: figures({ statements: 2, promises: 23, bytesToClient: 550 }) };

  expect(growthOf(before, now, { isSameNode: true })).toEqual([
    'get: statements was 1, is 2',
    'get: promises was 20, is 23',
  ]);
  expect(growthOf(before, now, { isSameNode: false })).toEqual(['get: statements was 1, is 2']);
});

const figures = (some: Partial<Figures>) => ({
  statements: 0,
  writesToPostgres: 0,
  bytesToPostgres: 0,
  writesToClient: 0,
  bytesToClient: 0,
  promises: 0,
  bytesAllocated: 0,
  ...some,
});
