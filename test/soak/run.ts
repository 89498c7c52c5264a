import { setTimeout as sleep } from 'node:timers/promises';
import type { Entry, Ledger } from '../faults/ledger.ts';
import { passingFaults } from '../faults/passing/index.ts';
import type { PassingFault, Surroundings } from '../faults/passing/passing-fault.ts';
import { openStage, type ServiceUnderFault, type Stage } from '../faults/stage.ts';
import { startOtlpReceiver } from '../stage/otlp-receiver.ts';
import { createPipe } from '../stage/pipe.ts';
import { until } from '../stage/until.ts';
import { deckOf } from './deck.ts';
import { startMixedLoad } from './load.ts';
import { plotOf } from './plot.ts';
import { type Reading, startRecorder } from './recorder.ts';
import { thin } from './thin.ts';
import { type Finding, findingsIn } from './verdict.ts';
import { watch, watchable } from './watched-host.ts';

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

/** In seconds: until when everything is well after a fault, and how long before the next one is looked. */
const WELL_WITHIN = 15;
const LOOK_AHEAD = 2;

/** In seconds: a first use opens what stays open, and what it leaves idle is closed after a minute. */
const FIRST_USE = 10;
const IDLE = 70;

/** What is left open for a while after the last request: connections kept alive by their callers, idle sessions. */
const REST = 150;

/** Runs it; `tell` is given what becomes of each fault. */
export async function runSoak({ minutes, seed, every, only }: Options, tell: (line: object) => void) {
  const stage = await openStage({ seed, trials: 1 });
  open = stage;
  try {
    const faults = passingFaults.filter(({ name }) => !only || only.includes(name));
    const { service, surroundings, watched, flags, keepTidy } = await setUp(stage);
    tell({ seed, minutes, every, faults: faults.length, flags });
    const recorder = startRecorder(service, watched, keepTidy);
    const once = startMixedLoad(service, stage.random.branch());
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
      await recorder.read().catch((error) => tell({ reading: String(error) }));
      await sleep(Math.max(0, (next - recorder.hours()) * 3_600_000));
      tell(told());
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

async function setUp(stage: Stage) {
  const [proxy, collector] = await Promise.all([stage.proxyPostgres(), startOtlpReceiver()]);
  const pipe = createPipe();
  const { file, flags, variables, runBy, remove } = watchable();
  for (const undo of [collector.stop, () => pipe.remove(), remove]) stage.defer(undo);
  let isStalled = false;
  const reading = setInterval(() => isStalled || pipe.read(), 50);
  stage.defer(() => clearInterval(reading));
  const telemetry = {
    SVC_OTEL_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_METRIC_EXPORT_INTERVAL: '10000',
  };
  const settings = { ...proxy.through, ...telemetry, ...variables, SVC_OAUTH_JWKS_REFRESH: '5' };
  const service = await stage.startService(settings, { output: pipe, runBy });
  const watched = watch(service, file);
  const logReader = {
    stall() {
      isStalled = true;
    },
    resume() {
      isStalled = false;
    },
  };
  let thinned = 0;
  const keepTidy = () => {
    thinned = thin(service.ledger, thinned, stage.claim);
    collector.received.length = 0;
  };
  const surroundings = { ...stage, service, proxy, collector, logReader, random: stage.random.branch() };
  return { service, surroundings, watched, flags, keepTidy };
}

/** Brings a fault about, and waits until a read, a create and /ready succeed. What came of it is asked for later. */
async function bringAbout(fault: PassingFault, surroundings: Surroundings, hours: number) {
  const { service, claim } = surroundings;
  const begun = performance.now();
  await fault
    .bringAbout(surroundings)
    .catch((error) => claim(`${fault.name} came about`, false, String(error)));
  const ended = performance.now();
  await until('all is well', () => isWell(service), { seconds: WELL_WITHIN }).catch(() =>
    claim(`all is well ${WELL_WITHIN} seconds after ${fault.name}`, false),
  );
  const outcome = {
    fault: fault.name,
    at_minute: Number((hours * 60).toFixed(1)),
    lasted_seconds: seconds(ended - begun),
    recovered_seconds: seconds(performance.now() - ended),
  };
  return () => ({
    ...outcome,
    longest_answer: longestAnswer(service.ledger, begun),
    refused_by_status: service.ledger.refusedByStatus(begun),
  });
}

function longestAnswer({ entries }: Ledger, moment: number): string {
  const taken = ({ answered, sent }: Entry) => answered - sent;
  const [longest] = entries
    .filter(({ sent, status }) => sent > moment && status !== 0)
    .toSorted((one, other) => taken(other) - taken(one));
  return longest ? `${seconds(taken(longest))} s, ${longest.operation} ${longest.status}` : '';
}

async function isWell(service: ServiceUnderFault): Promise<boolean> {
  const caller = service.caller();
  const [read, created, ready] = await Promise.all([
    caller.read('?limit=1'),
    caller.create(
      { email: `${crypto.randomUUID()}@example.com` },
      { 'idempotency-key': crypto.randomUUID() },
    ),
    fetch(`${service.url}/ready`).catch(() => undefined),
  ]);
  caller.close();
  await ready?.body?.cancel();
  return read.status === 200 && created.status === 201 && ready?.status === 200;
}

/** The last reading, once as little is held as before, or when that does not come about. */
async function untilAtRest(read: () => Promise<Reading>, before: Reading): Promise<Reading> {
  let last = await read();
  const isAtRest = async () => {
    last = await read();
    return last.descriptors <= before.descriptors && last.timers <= before.timers;
  };
  await until('all is at rest', isAtRest, { seconds: REST, every: 5000 }).catch(() => {});
  return last;
}

function tableOf({ ledgers, figures }: Stage, findings: readonly Finding[], faults: number): string {
  const entries = ledgers.flatMap((ledger) => ledger.entries);
  const acknowledged = ledgers.flatMap((ledger) => ledger.acknowledged).length;
  const refused = JSON.stringify(ledgers[0]?.refusedByStatus());
  return [
    '| | |\n| --- | --- |',
    `| faults | ${faults} |`,
    `| requests, of which were acknowledged writes | ${entries.length}, ${acknowledged} |`,
    `| answers that were no success, by status | ${refused} |`,
    `| creates whose outcome was not known, settled by their key | ${figures.settled} |`,
    ...ledgers.map((ledger) => `| longest answer | ${longestAnswer(ledger, 0)} |`),
    ...findings.map(
      ({ sentence, seen, holds }) => `| ${sentence} | ${seen || 'yes'}${holds ? '' : ' **(FAILED)**'} |`,
    ),
  ].join('\n');
}

function drawn(
  { samples, readings }: Pick<ReturnType<typeof startRecorder>, 'samples' | 'readings'>,
  moments: readonly number[],
  judgedFrom: number,
): string {
  const sampled = (name: 'memory' | 'descriptors' | 'threads') =>
    samples.map((sample) => [sample.hours, sample[name]] as const);
  const read = (name: 'memory' | 'live' | 'timers' | 'sockets' | 'descriptors') =>
    readings.map((reading) => [reading.hours, reading[name]] as const);
  const sessions = samples.flatMap(({ hours, sessions }) =>
    sessions === undefined ? [] : [[hours, sessions] as const],
  );
  const panels = [
    {
      title: 'memory, in MB',
      curves: [
        { title: 'resident', points: sampled('memory') },
        { title: 'without garbage', points: read('memory') },
        { title: 'heap without garbage', points: read('live') },
      ],
    },
    {
      title: 'descriptors, at most and between faults',
      curves: [
        { title: 'at most', points: sampled('descriptors'), joined: 'most' as const },
        { title: 'between faults', points: read('descriptors') },
      ],
    },
    {
      title: 'sessions of PostgreSQL',
      curves: [{ title: 'sessions', points: sessions, joined: 'most' as const }],
    },
    {
      title: 'timers, sockets and threads between faults',
      curves: [
        { title: 'timers', points: read('timers') },
        { title: 'sockets', points: read('sockets') },
        { title: 'threads', points: sampled('threads') },
      ],
    },
  ];
  return plotOf(
    panels,
    moments,
    judgedFrom,
    'An hour of mixed load, with a fault every half a minute (grey)',
  );
}

const seconds = (milliseconds: number) => Number((milliseconds / 1000).toFixed(2));
