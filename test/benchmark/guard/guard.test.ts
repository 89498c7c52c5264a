import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { growthOf, nodeMajor, readFigures, writeFigures } from './figures.ts';
import { FIGURES, type Measured, measureAll } from './measure.ts';

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

test('of a service that wastes, the workloads and the figures are named', {
  timeout: TIMEOUT_MS,
}, async () => {
  const preloaded = [join(import.meta.dirname, 'waste.ts')];
  const wasteful = await measureAll(['health', 'get'], preloaded);
  const grown = growthOf(measured, wasteful, { isSameNode: true });

  expect(grown.map((growth) => growth.replace(/ was .*/, ''))).toEqual([
    ...['writesToClient', 'bytesToClient', 'promises', 'bytesAllocated'].map((figure) => `health: ${figure}`),
    // Both statements leave in one write.
    ...FIGURES.filter((figure) => figure !== 'writesToPostgres').map((figure) => `get: ${figure}`),
  ]);
  // The counts of V8 may differ for another Node.
  expect(growthOf(measured, wasteful, { isSameNode: false }).join()).not.toMatch(/promises|bytesAllocated/);
});
