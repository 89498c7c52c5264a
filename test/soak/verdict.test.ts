import { expect, test } from 'vitest';
import type { Reading } from './recorder.ts';
import { findingsIn } from './verdict.ts';

const REST: Reading = {
  hours: 0,
  memory: 120,
  kept: 10,
  compiled: 9,
  live: 40,
  descriptors: 25,
  threads: 11,
  timers: 12,
  sockets: 4,
  sessions: 2,
};

/** The sentences that do not hold for an hour of readings, of which the first quarter warms up. */
function failures(under: (hours: number) => Partial<Reading>, atRest: Partial<Reading> = {}) {
  const readings = Array.from({ length: 120 }, (_, n) => ({
    ...REST,
    hours: n / 120,
    sessions: 9,
    ...under(n / 120),
  }));
  const after = { ...REST, hours: 1, ...atRest };
  const record = {
    samples: readings.map((reading) => ({ ...reading, memory: reading.memory + reading.kept })),
    readings,
    before: REST,
    after,
    judgedFrom: 0.25,
    pool: 11,
    faults: 120,
  };
  return findingsIn(record)
    .filter(({ holds }) => !holds)
    .map(({ sentence }) => sentence);
}

test('An hour in which nothing grows passes.', () => {
  expect(failures(() => ({}))).toEqual([]);
});

test('What warms up in the first quarter of an hour is no leak.', () => {
  expect(failures((hours) => ({ memory: Math.min(120, 80 + 200 * hours) }))).toEqual([]);
});

test('A leak on the heap and one beside it are distinguished.', () => {
  const [heap, resident] = [
    'what lives on the heap and beside it grows by less than 2 MB an hour',
    'resident memory without garbage grows by less than 2 MB an hour',
  ];

  expect(failures((hours) => ({ live: 40 + 2.5 * hours, memory: 120 + 2.5 * hours }))).toEqual([
    heap,
    resident,
  ]);
  expect(failures((hours) => ({ memory: 120 + 2.5 * hours }))).toEqual([resident]);
});

test('What the C library keeps of a burst is no leak, and what else stays of it is one.', () => {
  expect(failures((hours) => ({ kept: hours > 0.5 ? 28 : 10 }))).toEqual([]);
  expect(failures((hours) => ({ memory: hours > 0.5 ? 138 : 120 }))).toEqual([
    'resident memory without garbage grows by less than 2 MB an hour',
    'resident memory with its garbage stays as it was, but for what the C library keeps',
  ]);
});

test('Code that V8 goes on to compile is no leak, and code that is made again and again is one.', () => {
  expect(failures((hours) => ({ compiled: 8 + hours }))).toEqual([]);
  expect(failures((hours) => ({ compiled: 8 + 5 * hours }))).toEqual(['compiled code is 12 MB at most']);
});

test('A descriptor that is lost now and then is found under load and at rest.', () => {
  const leak = (hours: number) => ({ descriptors: 25 + Math.floor(12 * hours) });

  expect(failures(leak, { descriptors: 37 })).toEqual([
    'descriptors under load are flat',
    'descriptors at rest are as before',
  ]);
});

test('Timers and sessions that stay at rest are found, and a session too many between faults.', () => {
  expect(failures(() => ({}), { timers: 13, sessions: 3 })).toEqual([
    'timers at rest are as before',
    'sessions at rest are as before',
  ]);
  expect(failures((hours) => ({ sessions: hours > 0.5 ? 12 : 9 }))).toEqual([
    'sessions are 11 at most when no fault is there',
  ]);
});

test('Readings that are missing are no success.', () => {
  const record = {
    before: REST,
    after: REST,
    judgedFrom: 0,
    pool: 11,
    faults: 120,
    samples: [],
    readings: [],
  };

  expect(findingsIn(record).filter(({ holds }) => !holds)).toContainEqual({
    sentence: 'there is a reading for nine faults in ten',
    seen: '0 of 120, 0 of them judged',
    holds: false,
  });
});
