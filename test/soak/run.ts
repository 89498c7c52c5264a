import { setTimeout as sleep } from 'node:timers/promises';
import { passingFaults } from '../faults/passing/index.ts';
import { startMixedLoad } from '../lab/load/mixed.ts';
import { openStage, type Stage } from '../lab/stage/stage.ts';
import { until } from '../stage/until.ts';
import { bringAbout } from './bring-about.ts';
import { deckOf } from './deck.ts';
import { type Reading, startRecorder } from './recorder.ts';
import { drawn, tableOf } from './report.ts';
import { surround } from './surroundings.ts';
import { type Finding, findingsIn, HELD_AT_REST } from './verdict.ts';

/** A soak: how long, by which chance, and how many seconds from one fault to the next. */
export type Options = {
  readonly minutes: number;
  readonly seed: number;
  readonly every: number;
  /** The names of those faults that are brought about; all of them when absent. */
  readonly only?: readonly string[] | undefined;
};

/** The connections of the pool, and that of /ready. */
const SESSIONS = 11;

/** In seconds: how long before the next fault is looked. */
const LOOK_AHEAD = 2;

/**
 * In seconds: a first use, without rests, opens what stays open, and has V8 compile what is used often, which at the load of a
 * usual day takes it hours; what it leaves idle is closed after a minute.
 */
const FIRST_USE = 30;
const IDLE = 70;

/** What is left open for a while after the last request: connections kept alive by their callers, idle sessions. */
const REST = 150;

/** Runs it; `tell` is given what becomes of each fault. */
export async function runSoak({ minutes, seed, every, only }: Options, tell: (line: object) => void) {
  const stage = await openStage({ seed, trials: 1 });
  open = stage;
  try {
    const faults = passingFaults.filter(({ name }) => !only || only.includes(name));
    const { service, surroundings, watched, flags, keepTidy } = await surround(stage);
    tell({ seed, minutes, every, faults: faults.length, flags });
    const recorder = startRecorder(service, watched, keepTidy);
    const once = startMixedLoad(service, stage.random.branch(), { isResting: false });
    await sleep(FIRST_USE * 1000);
    await once.stop();
    await sleep(IDLE * 1000);
    const before = await recorder.read();

    const load = startMixedLoad(service, stage.random.branch());
    const end = recorder.hours() + minutes / 60;
    const deal = deckOf(faults, stage.random.branch());
    // Each fault has been there once by then; or a third of a short run is over.
    const judgedFrom = Math.min((faults.length * every) / 3600, minutes / 180) + recorder.hours();
    const moments: number[] = [];
    for (let next = recorder.hours(); recorder.hours() < end; ) {
      next = Math.max(next, recorder.hours()) + every / 3600;
      moments.push(recorder.hours());
      const told = await bringAbout(deal(), surroundings, recorder.hours());
      await sleep(Math.max(0, (next - recorder.hours()) * 3_600_000 - LOOK_AHEAD * 1000));
      const reading = await recorder.read().catch((error) => tell({ reading: String(error) }));
      await sleep(Math.max(0, (next - recorder.hours()) * 3_600_000));
      tell({ ...told(), ...(reading && held(reading)) });
    }

    const [, ...readings] = recorder.readings;
    const samples = [...recorder.samples];
    const { faults: faultsOfReader, read } = await load.stop();
    stage.faults.push(...faultsOfReader);
    const [row] = await stage.postgres.query('SELECT count(*)::int FROM user_changes');
    stage.claim('the reader has read every change once', read === row?.count, { read, ...row });
    const after = await untilAtRest(recorder.read, before);
    recorder.stop();
    await service.checkBooks();
    const { lost } = stage.figures;
    await stage.judge();

    const findings: Finding[] = [
      ...findingsIn({
        samples,
        readings,
        before,
        after,
        judgedFrom,
        pool: SESSIONS,
        faults: moments.length,
      }),
      {
        sentence: 'nothing acknowledged is missing, doubled, altered or risen',
        seen: `${lost}`,
        holds: lost === 0,
      },
      {
        sentence: 'everything that was claimed held',
        seen: stage.faults.join('\n'),
        holds: stage.faults.length === 0,
      },
    ];
    return {
      findings,
      table: tableOf(stage, findings, moments.length),
      plot: drawn(recorder, moments, judgedFrom),
    };
  } finally {
    await stage.close();
  }
}

let open: Stage | undefined;

/** Takes down what a soak that is cut off has built up. */
export async function abandonSoak(): Promise<void> {
  await open?.close();
}

/** The last reading, once as little is held as before, or when that does not come about. */
async function untilAtRest(read: () => Promise<Reading>, before: Reading): Promise<Reading> {
  let last = await read();
  const isAtRest = async () => {
    last = await read();
    return HELD_AT_REST.every((name) => last[name] <= before[name]);
  };
  await until('all is at rest', isAtRest, { seconds: REST, every: 5000 }).catch(() => {});
  return last;
}

const held = ({ memory, live, compiled, kept, descriptors, timers, sessions }: Reading) => ({
  memory_mb: Number(memory.toFixed(1)),
  heap_mb: Number(live.toFixed(2)),
  compiled_mb: Number(compiled.toFixed(2)),
  kept_mb: Number(kept.toFixed(1)),
  descriptors,
  timers,
  sessions,
});
