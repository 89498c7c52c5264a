import { medianOf } from '../lab/meters/percentile.ts';
import { leastSquares, slopeOfMedians } from '../lab/meters/slope.ts';
import type { Reading } from './recorder.ts';

/** Megabytes an hour. */
const MAX_SLOPE_MB_PER_H = 2;

/**
 * In megabytes: what V8 compiles is bounded by the functions that there are, grows for hours as one after the other is used
 * often enough, and is some 9; code that is compiled again and again would pass any bound.
 */
const MAX_COMPILED_MB = 12;

/** In hours: a slope over less time is that of noise, and is not judged. */
const MIN_JUDGED_H = 1 / 3;

/** The share of the judged time at its beginning and at its end whose medians are compared. */
const ENDS_SHARE = 0.2;

/** What a service holds as much of after the load as before it. */
export const HELD_AT_REST = ['descriptors', 'threads', 'timers', 'sockets', 'sessions'] as const;

/** A sentence that must hold, whether it does, and the figures that show it. */
export type Finding = readonly [sentence: string, holds: boolean, seen: string];

type Record = {
  readonly readings: readonly Reading[];
  /** At rest, before the load began and after it had ended. */
  readonly before: Reading;
  readonly after: Reading;
  /** Hours after which nothing warms up any more. */
  readonly judgedFrom: number;
  readonly pool: number;
  readonly faults: number;
};

/** Holds what a service held against what it may. */
export function findingsIn(record: Record): readonly Finding[] {
  const { readings, before, after, judgedFrom, pool, faults } = record;
  const judged = readings.filter(({ hours }) => hours >= judgedFrom);

  function slope(sentence: string, name: 'memory' | 'live'): Finding {
    const points = judged.map((reading) => [reading.hours, reading[name]] as const);
    const slopes = [leastSquares(points), slopeOfMedians(points, ENDS_SHARE)];
    const [squares, medians] = slopes.map((value) => value.toFixed(2));
    const holds = slopes.every((value) => value < MAX_SLOPE_MB_PER_H);
    return [sentence, holds, `${squares} MB an hour by least squares, ${medians} by medians`];
  }

  function endsOf(name: keyof Reading): readonly [first: number, last: number] {
    const values = judged.map((reading) => reading[name]);
    const part = Math.ceil(values.length * ENDS_SHARE);
    return [medianOf(values.slice(0, part)), medianOf(values.slice(-part))];
  }

  function flat(name: 'descriptors' | 'timers' | 'sockets' | 'threads'): Finding {
    const [first, last] = endsOf(name);
    // Those of a few requests more or less in flight.
    const holds = last <= first + 5;
    return [`${name} under load are flat`, holds, `median ${first} at first, ${last} at last`];
  }

  function memoryWithGarbage(): Finding {
    const [first, last] = endsOf('withGarbage');
    const [keptFirst, keptLast] = endsOf('kept');
    const most = Math.max(...judged.map(({ withGarbage }) => withGarbage));
    const [atFirst, atLast, atMost, ...kept] = [first, last, most, keptFirst, keptLast].map(Math.round);
    return [
      'resident memory with its garbage stays as it was, but for what the C library keeps',
      last - keptLast <= first - keptFirst + 10,
      `median ${atFirst} MB at first, ${atLast} at last, ${atMost} at most; kept ${kept.join(' and ')}`,
    ];
  }

  const [first = 0, last = 0] = [judged.at(0)?.hours, judged.at(-1)?.hours];
  const ofMemory = () => [
    slope('what lives on the heap and beside it grows by less than 2 MB an hour', 'live'),
    slope('resident memory without garbage grows by less than 2 MB an hour', 'memory'),
    memoryWithGarbage(),
  ];
  const compiled = Math.max(...readings.map((reading) => reading.compiled));
  const sessions = Math.max(...judged.map((reading) => reading.sessions));
  return [
    [
      'there is a reading for nine faults in ten',
      judged.length > 2 && readings.length >= 0.9 * faults,
      `${readings.length} of ${faults}, ${judged.length} of them judged`,
    ],
    ...(last - first < MIN_JUDGED_H ? [] : ofMemory()),
    [
      `compiled code is ${MAX_COMPILED_MB} MB at most`,
      compiled <= MAX_COMPILED_MB,
      `${compiled.toFixed(2)} at most`,
    ],
    ...(['descriptors', 'timers', 'sockets', 'threads'] as const).map(flat),
    [`sessions are ${pool} at most when no fault is there`, sessions <= pool, `${sessions} at most`],
    ...HELD_AT_REST.map((name): Finding => {
      const seen = `${before[name]} before, ${after[name]} after`;
      return [`${name} at rest are as before`, after[name] <= before[name], seen];
    }),
  ];
}
