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

/** A sentence that has to hold, and the figures that show whether it does. */
export type Finding = { readonly sentence: string; readonly seen: string; readonly holds: boolean };

type Record = {
  readonly readings: readonly Reading[];
  /** At rest, before the load began and after it had ended. */
  readonly before: Reading;
  readonly after: Reading;
  /** Hours after which nothing warms up any more. */
  readonly judgedFrom: number;
  readonly pool: number;
  /** How many faults there were. */
  readonly faults: number;
};

/** Holds what a service held against what it may. */
export function findingsIn({
  readings,
  before,
  after,
  judgedFrom,
  pool,
  faults,
}: Record): readonly Finding[] {
  const judged = readings.filter(({ hours }) => hours >= judgedFrom);

  function slope(sentence: string, name: 'memory' | 'live'): Finding {
    const points = judged.map((reading) => [reading.hours, reading[name]] as const);
    const slopes = [leastSquares(points), slopeOfMedians(points, ENDS_SHARE)];
    const [squares, medians] = slopes.map((value) => value.toFixed(2));
    return {
      sentence,
      seen: `${squares} MB an hour by least squares, ${medians} by medians`,
      holds: slopes.every((value) => value < MAX_SLOPE_MB_PER_H),
    };
  }

  function flat(name: 'descriptors' | 'timers' | 'sockets' | 'threads'): Finding {
    const [first, last] = endsOf(judged.map((reading) => reading[name]));
    return {
      sentence: `${name} under load are flat`,
      seen: `median ${first} at first, ${last} at last`,
      // Those of a few requests more or less in flight.
      holds: last <= first + 5,
    };
  }

  function memoryWithGarbage(): Finding {
    const memory = judged.map(({ withGarbage }) => withGarbage);
    const [first, last] = endsOf(memory);
    const [keptFirst, keptLast] = endsOf(judged.map(({ kept }) => kept));
    const rounded = [first, last, Math.max(...memory), keptFirst, keptLast].map((value) => value.toFixed(0));
    return {
      sentence: 'resident memory with its garbage stays as it was, but for what the C library keeps',
      seen: `median ${rounded[0]} MB at first, ${rounded[1]} at last, ${rounded[2]} at most; kept ${rounded[3]} and ${rounded[4]}`,
      holds: last - keptLast <= first - keptFirst + 10,
    };
  }

  function compiledCode(): Finding {
    const compiled = readings.map((reading) => reading.compiled);
    const [first, last] = endsOf(judged.map((reading) => reading.compiled));
    return {
      sentence: `compiled code is ${MAX_COMPILED_MB} MB at most`,
      seen: `median ${first.toFixed(2)} at first, ${last.toFixed(2)} at last, ${Math.max(...compiled).toFixed(2)} at most`,
      holds: compiled.every((value) => value <= MAX_COMPILED_MB),
    };
  }

  const [first, last] = [judged.at(0)?.hours ?? 0, judged.at(-1)?.hours ?? 0];
  const slopes =
    last - first < MIN_JUDGED_H
      ? []
      : [
          slope('what lives on the heap and beside it grows by less than 2 MB an hour', 'live'),
          slope('resident memory without garbage grows by less than 2 MB an hour', 'memory'),
          memoryWithGarbage(),
        ];
  const most = Math.max(...judged.map(({ sessions }) => sessions));
  const atRest = HELD_AT_REST.map(
    (name): Finding => ({
      sentence: `${name} at rest are as before`,
      seen: `${before[name]} before, ${after[name]} after`,
      holds: after[name] <= before[name],
    }),
  );
  return [
    {
      sentence: 'there is a reading for nine faults in ten',
      seen: `${readings.length} of ${faults}, ${judged.length} of them judged`,
      holds: judged.length > 2 && readings.length >= 0.9 * faults,
    },
    ...slopes,
    compiledCode(),
    flat('descriptors'),
    flat('timers'),
    flat('sockets'),
    flat('threads'),
    {
      sentence: `sessions are ${pool} at most when no fault is there`,
      seen: `${most} at most`,
      holds: most <= pool,
    },
    ...atRest,
  ];
}

/** The medians of the first and of the last part. */
function endsOf(values: readonly number[]): readonly [first: number, last: number] {
  const part = Math.ceil(values.length * ENDS_SHARE);
  return [medianOf(values.slice(0, part)), medianOf(values.slice(-part))];
}
