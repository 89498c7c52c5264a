import { expect, test } from 'vitest';
import { LIMITS, verdictOn } from './limits.ts';
import type { Row } from './table.ts';

const quantiles = { p50: 5, p99: 100 };

const within: Row = {
  ...{ connections: 300, factor: 5, peak: 1000, cpu: 1, isNormalAfter: true },
  outcome: {
    ...{ seconds: 10, due: 50_000, sent: 8000, noConnection: 42_000, answered: 8000 },
    ...{ givenUp: 0, broken: 0, breakReason: undefined, late: 0, refused: 0, other: 0 },
    ...{ responseLatency: quantiles, refusalLatency: quantiles, used: undefined, memory: 0 },
  },
  probes: { asked: 200, failed: 0, longestHealth: 100, longestReady: 1000 },
};

/** On two rounds of one load, and another load. */
const verdictsOn = (row: Row) =>
  LIMITS.map((limit) => verdictOn(limit, [within, { ...within, factor: 1 }, row])).filter(
    (verdict) => !verdict.startsWith('kept: '),
  );

test('a load within each limit keeps all of them', () => {
  expect(verdictsOn(within)).toEqual([]);
});

test('what was not offered cannot be served', () => {
  expect(verdictsOn({ ...within, peak: 2000, outcome: { ...within.outcome, due: 8000 } })).toEqual([]);
});

test.each<[string, Partial<Row>]>([
  ['FAILED: Goodput is at least 80 % of the peak: 300 connections, 5 x: 79.6 %.', { peak: 1010 }],
  ['FAILED: All is normal two seconds after: 300 connections, 5 x: not normal.', { isNormalAfter: false }],
  [
    'FAILED: Every probe is answered 200: 300 connections, 5 x: 1 of 400 not.',
    { probes: { ...within.probes, failed: 1 } },
  ],
  [
    'FAILED: /ready is answered within 1,000 ms: 300 connections, 5 x: 1001 ms.',
    { probes: { ...within.probes, longestReady: 1001 } },
  ],
  [
    'not kept, which decides nothing: 99 of 100 refusals come within 100 ms: 300 connections, 5 x: 101 ms.',
    { outcome: { ...within.outcome, refusalLatency: { ...quantiles, p99: 101 } } },
  ],
  [
    'not kept, which decides nothing: /health is answered within 100 ms: 300 connections, 5 x: 101 ms.',
    { probes: { ...within.probes, longestHealth: 101 } },
  ],
])('a load beyond a limit is named: %s', (verdict, change) => {
  expect(verdictsOn({ ...within, ...change })).toEqual([verdict]);
});
