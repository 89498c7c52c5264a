import { expect, test } from 'vitest';
import type { Reading } from './recorder.ts';
import { findingsIn } from './verdict.ts';

const REST: Reading = {
  ...{ hours: 0, memory: 120, withGarbage: 130, kept: 10, compiled: 9, live: 40 },
  ...{ descriptors: 25, threads: 11, timers: 12, sockets: 4, sessions: 2 },
};

type Changes = (hours: number) => Partial<Reading>;

/** The sentences that do not hold for an hour of readings, of which the first quarter warms up. */
function failures(under: Changes, atRest: Partial<Reading> = {}, readings = 120): readonly string[] {
  const hour = Array.from({ length: readings }, (_, n) => ({
    ...{ ...REST, hours: n / 120, sessions: 9 },
    ...under(n / 120),
  }));
  const findings = findingsIn({
    readings: hour.map((reading) => ({ ...reading, withGarbage: reading.memory + reading.kept })),
    before: REST,
    after: { ...REST, hours: 1, ...atRest },
    ...{ judgedFrom: 0.25, pool: 11, faults: 120 },
  });
  return findings.filter(([, holds]) => !holds).map(([sentence]) => sentence);
}

const HEAP = 'what lives on the heap and beside it grows by less than 2 MB an hour';
const RESIDENT = 'resident memory without garbage grows by less than 2 MB an hour';
const GARBAGE = 'resident memory with its garbage stays as it was, but for what the C library keeps';

test.each<[string, Changes, Partial<Reading>, readonly string[]]>([
  ['nothing', () => ({}), {}, []],
  ['memory while it warms up', (hours) => ({ memory: Math.min(120, 80 + 200 * hours) }), {}, []],
  ['the heap', (hours) => ({ live: 40 + 2.5 * hours, memory: 120 + 2.5 * hours }), {}, [HEAP, RESIDENT]],
  [
    'the heap, beneath peaks',
    (hours) => ({ live: 40 + 12 * hours + (Math.round(hours * 120) % 9 === 0 ? 50 : 0) }),
    {},
    [HEAP],
  ],
  ['what the C library keeps of a burst', (hours) => ({ kept: hours > 0.5 ? 28 : 10 }), {}, []],
  ['what else stays of a burst', (hours) => ({ memory: hours > 0.5 ? 138 : 120 }), {}, [RESIDENT, GARBAGE]],
  [
    'code that is compiled again and again',
    (hours) => ({ compiled: 8 + 5 * hours }),
    {},
    ['compiled code is 12 MB at most'],
  ],
  [
    'descriptors, now and then',
    (hours) => ({ descriptors: 25 + Math.floor(12 * hours) }),
    { descriptors: 37 },
    ['descriptors under load are flat', 'descriptors at rest are as before'],
  ],
  [
    'all that the system counts',
    (hours) => ({ timers: 12 + 20 * hours, sockets: 4 + 20 * hours, threads: 11 + 20 * hours }),
    { timers: 13, sockets: 5, threads: 12, sessions: 3 },
    [
      ...['timers', 'sockets', 'threads'].map((name) => `${name} under load are flat`),
      ...['threads', 'timers', 'sockets', 'sessions'].map((name) => `${name} at rest are as before`),
    ],
  ],
  [
    'a session too many between faults',
    (hours) => ({ sessions: hours > 0.5 ? 12 : 9 }),
    {},
    ['sessions are 11 at most when no fault is there'],
  ],
])('a growth of %s is a leak, or none', (_, under, atRest, sentences) => {
  expect(failures(under, atRest)).toEqual(sentences);
});

test.each([0, 107])('readings that are missing are no success: %i for 120 faults', (readings) => {
  expect(failures(() => ({}), {}, readings)).toContain('there is a reading for nine faults in ten');
});
