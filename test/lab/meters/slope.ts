import { medianOf } from './percentile.ts';

/** A measured value, and when: in hours. */
export type Point = readonly [hours: number, value: number];

/** The slope of the line with the least squared distances, by the hour. */
export function leastSquares(points: readonly Point[]): number {
  const [x, y] = [meanOf(points.map(([hours]) => hours)), meanOf(points.map(([, value]) => value))];
  const covariance = meanOf(points.map(([hours, value]) => (hours - x) * (value - y)));
  return covariance / meanOf(points.map(([hours]) => (hours - x) ** 2));
}

/**
 * How much the median of the last part lies above that of the first, by the hour between the middles of both: single
 * values, however far off, do not move it.
 */
export function slopeOfMedians(points: readonly Point[], share: number): number {
  const [from = 0, to = 0] = [points.at(0)?.[0], points.at(-1)?.[0]];
  const width = (to - from) * share;
  const first = points.filter(([hours]) => hours <= from + width);
  const last = points.filter(([hours]) => hours >= to - width);
  const middles = medianOf(last.map(([hours]) => hours)) - medianOf(first.map(([hours]) => hours));
  return (medianOf(last.map(([, value]) => value)) - medianOf(first.map(([, value]) => value))) / middles;
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
