import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { passingFaults } from '../../faults/passing-faults.ts';
import { bringAbout, longestResponse } from '../../soak/bring-about.ts';
import { type Reading, startRecorder } from '../../soak/recorder.ts';
import { surround } from '../../soak/surroundings.ts';
import { type Finding, findingsIn, HELD_AT_REST } from '../../soak/verdict.ts';
import { until } from '../../stage/until.ts';
import { defineExperiment, numberIn } from '../experiment.ts';
import { startMixedLoad } from '../load/mixed.ts';
import { deckOf } from '../load/random.ts';

/** The connections of the pool, and that of /ready. */
const SESSIONS = 11;

/** In seconds: how long before the next fault is looked. */
const READ_AHEAD_S = 2;

/**
 * In seconds: a first use, without rests, opens what stays open, and has V8 compile what is used often, which at the load of a
 * usual day takes it hours; what it leaves idle is closed after a minute.
 */
const FIRST_USE_S = 30;
const IDLE_S = 70;

/** What is left open for a while after the last request: connections kept alive by their callers, idle sessions. */
const REST_LIMIT_S = 150;

/** The options are described in test/soak/README.md. */
export const experiment = defineExperiment({
  promise:
    'After an hour of mixed load with a fault every half minute, nothing is left and memory is as before.',
  takes: '80 minutes, or 20 more than --minutes 10 names',
  needs: 'Linux and the npm registry',
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(randomInt(1_000_000)) },
    /** Seconds from one fault to the next. */
    every: { type: 'string', default: '30' },
    /** Only these faults. */
    fault: { type: 'string', multiple: true },
  },
  async run({ options, print, printRow, openStage }) {
    const minutes = numberIn('minutes', options.minutes);
    const seed = numberIn('seed', options.seed);
    const every = numberIn('every', options.every);
    const printJson = (line: object) => print(JSON.stringify(line));
    const stage = await openStage({ seed, trials: 1 });
    const faults = passingFaults.filter(({ name }) => options.fault?.includes(name) ?? true);
    const { service, surroundings, settled, flags, keepTidy } = await surround(stage);
    printJson({ seed, minutes, every, faults: faults.length, flags });
    const recorder = startRecorder(service, settled);
    const once = startMixedLoad(service, stage.random.branch(), { isResting: false });
    await sleep(FIRST_USE_S * 1000);
    await once.stop();
    await sleep(IDLE_S * 1000);
    const before = await recorder.read();

    const load = startMixedLoad(service, stage.random.branch());
    const end = recorder.hours() + minutes / 60;
    const deal = deckOf(faults, stage.random.branch());
    // Each fault has been there once by then; or a third of a short run is over.
    const judgedFrom = Math.min((faults.length * every) / 3600, minutes / 180) + recorder.hours();
    let broughtAbout = 0;
    for (let next = recorder.hours(); recorder.hours() < end; ) {
      next = Math.max(next, recorder.hours()) + every / 3600;
      broughtAbout += 1;
      const report = await bringAbout(deal(), surroundings, recorder.hours());
      await sleep(Math.max(0, (next - recorder.hours()) * 3_600_000 - READ_AHEAD_S * 1000));
      keepTidy();
      const reading = await recorder.read().catch((error) => printJson({ reading: String(error) }));
      await sleep(Math.max(0, (next - recorder.hours()) * 3_600_000));
      printJson({ ...report(), ...(reading && rounded(reading)) });
    }

    const [, ...readings] = recorder.readings;
    const { faults: faultsOfReader, read } = await load.stop();
    stage.faults.push(...faultsOfReader);
    const [row] = await stage.postgres.query('SELECT count(*)::int FROM user_changes');
    stage.claim('the reader has read every change once', read === row?.count, { read, ...row });
    const after = await untilAtRest(recorder.read, before);
    await service.checkBooks();
    const { lost } = stage.figures;
    await stage.judge();

    const findings: Finding[] = [
      ...findingsIn({ readings, before, after, judgedFrom, pool: SESSIONS, faults: broughtAbout }),
      ['nothing acknowledged is missing, doubled, altered or risen', lost === 0, `${lost}`],
      ['everything that was claimed held', stage.faults.length === 0, stage.faults.join('\n')],
    ];
    await stage.close();

    const { ledger } = service;
    printJson({
      faults: broughtAbout,
      sent: ledger.entries.length,
      acknowledged: ledger.acknowledged.length,
      refused_by_status: ledger.refusedByStatus(),
      longest_response: longestResponse(ledger, 0),
    });
    for (const [sentence, holds, seen] of findings)
      print(`${holds ? 'held' : 'failed'}: ${sentence}: ${seen}`);
    const passed = findings.filter(([, holds]) => holds).length;
    print(`seed ${seed}`);
    printRow(
      `${broughtAbout} faults, ${ledger.acknowledged.length} acknowledged, ${lost} lost, ${findings.length - passed} failed`,
      '0',
    );
    print(`${passed} passed, ${findings.length - passed} failed`);
    return passed === findings.length;
  },
});

/** The last reading, once as little is held as before, or when that does not come about. */
async function untilAtRest(read: () => Promise<Reading>, before: Reading): Promise<Reading> {
  const look = async () => {
    const reading = await read();
    return HELD_AT_REST.every((name) => reading[name] <= before[name]) && reading;
  };
  return until('all is at rest', look, { seconds: REST_LIMIT_S, every: 5000 }).catch(read);
}

/** Numbers with two digits at most after the point. */
const rounded = (reading: Reading) =>
  Object.fromEntries(Object.entries(reading).map(([name, value]) => [name, Number(value.toFixed(2))]));
