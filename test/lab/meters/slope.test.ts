import { expect, test } from 'vitest';
import { leastSquares, type Point, slopeOfMedians } from './slope.ts';

/** An hour of values, one in half a minute. */
const hourOf = (valueAt: (hours: number, number: number) => number): readonly Point[] =>
  Array.from({ length: 121 }, (_, n) => [n / 120, valueAt(n / 120, n)]);

test('A leak of 2 MB an hour is found by both slopes.', () => {
  const points = hourOf((hours) => 90 + 2 * hours);

  expect([leastSquares(points), slopeOfMedians(points, 1 / 6)].map((slope) => slope.toFixed(6))).toEqual([
    '2.000000',
    '2.000000',
  ]);
});

test('What is flat has no slope, and peaks do not move that of the medians.', () => {
  const points = hourOf((_, number) => (number % 9 === 0 ? 140 : 90));

  expect(slopeOfMedians(points, 1 / 6)).toBe(0);
});

test('A leak beneath peaks is found by the slope of the medians.', () => {
  const points = hourOf((hours, number) => 90 + 12 * hours + (number % 9 === 0 ? 50 : 0));

  expect(slopeOfMedians(points, 1 / 6)).toBeCloseTo(12, 0);
});
