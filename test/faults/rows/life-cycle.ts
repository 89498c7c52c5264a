import { setTimeout as sleep } from 'node:timers/promises';
import { readSteadily } from '../../lab/load/load.ts';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import { holdUsers, untilUnderWay } from '../../stage/locks.ts';
import { startOtlpReceiver } from '../../stage/otlp-receiver.ts';
import { drainEvents, endedBy } from '../../stage/shutdown.ts';
import type { Row } from '../run-row.ts';

const DRAIN_S = 1;
const PATIENT = { SVC_POSTGRES_STATEMENT_TIMEOUT: '60', SVC_POSTGRES_POOL_TIMEOUT: '60' };

type State = {
  readonly variables?: Record<string, string>;
  /** Whether the signal comes before anybody can call, as soon as the process hears it. */
  readonly isEarly?: boolean;
  enter?(service: ServiceUnderFault, stage: Stage): Promise<(() => unknown) | undefined>;
};

/** Sends the process the signal when it begins to listen for it, which is before the host is loaded. */
const SIGNAL_EARLY = `process.on('newListener', (name) => {
  if (name === 'SIGTERM') setImmediate(() => process.kill(process.pid, 'SIGTERM'));
});`;

/** States in which a signal may find the process, each with what ends them, and the settings they need. */
const STATES: Readonly<Record<string, State>> = {
  'before listening': {
    variables: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SIGNAL_EARLY)}` },
    isEarly: true,
  },
  idle: {},
  'under load': {
    async enter(service) {
      const load = service.startLoad(16);
      await sleep(500);
      return load.stop;
    },
  },
  'with a hung query': {
    variables: PATIENT,
    async enter(service, { postgres }) {
      const lock = await holdUsers(postgres);
      const hung = service.caller().read('?limit=1');
      await untilUnderWay(1, postgres);
      return async () => {
        await hung;
        await lock.release();
      };
    },
  },
  'with a frozen PostgreSQL': {
    async enter(service, { postgres }) {
      await service.caller().read('?limit=1');
      await postgres.freeze();
      return postgres.thaw;
    },
  },
  'with a dead collector': {
    variables: { SVC_OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
    async enter(service) {
      await service.caller().read('?limit=1');
      return undefined;
    },
  },
  'for the second time': {
    async enter(service) {
      service.signal('SIGTERM');
      return undefined;
    },
  },
};

export const terminated: Row = {
  name: 'terminated',
  promise: 'SIGTERM in every state: gone within drain timeout and two seconds, one drain event, exit code 0.',
  trials: 8,
  brief: 1,
  async run(stage) {
    const { trials, claim, tried, recovered, figures } = stage;
    for (let trial = 0; trial < trials; trial += 1) {
      for (const [name, state] of Object.entries(STATES)) {
        const { host, code, seconds } = await (state.isEarly ? endedEarly : endedIn)(state, stage);
        recovered(seconds);
        figures.exits += 1;
        claim(`${name}: gone in time`, seconds <= DRAIN_S + 2, seconds);
        claim(`${name}: exit code 0`, code === 0, code);
        const drains = drainEvents(host).map(({ event }) => event);
        claim(`${name}: one drain event`, drains.length === 1, drains);
        claim(`${name}: nothing on standard error`, host.errors() === '', host.errors());
        tried();
      }
    }
  },
};

const SHORT_DRAIN = { SVC_SHUTDOWN_DRAIN_TIMEOUT: String(DRAIN_S) };

async function endedIn({ variables, enter }: State, stage: Stage) {
  const service = await stage.startService({ ...SHORT_DRAIN, ...variables }, { isOnItsOwn: true });
  const leave = await enter?.(service, stage);
  const ended = await endedBy('SIGTERM', service);
  await leave?.();
  return { host: service, ...ended };
}

/** The seconds are those since it was started. */
async function endedEarly({ variables }: State, stage: Stage) {
  const begun = performance.now();
  const host = await stage.startHostWith({ ...SHORT_DRAIN, ...variables });
  const ended = await host.exited;
  return { host, ...ended, seconds: (performance.now() - begun) / 1000 };
}

const SETTINGS: readonly Record<string, string | undefined>[] = [
  { SVC_OAUTH_ISSUER: undefined },
  { SVC_OAUTH_AUDIENCE: '' },
  { SVC_OAUTH_JWKS_URI: 'http://user:hunter2@127.0.0.1/keys' },
  { SVC_OAUTH_JWKS_URI: 'no address' },
  { SVC_ENV: 'testing' },
  { SVC_PORT: '65536' },
  { SVC_PORT: 'x' },
  { SVC_POSTGRES_POOL_SIZE: '0' },
  { SVC_POSTGRES_STATEMENT_TIMEOUT: '-1' },
  { SVC_POSTGRES_PASSWORD: 'hunter2', SVC_POSTGRES_PORT: '1e3' },
  { SVC_OAUTH_ALGORITHMS: 'HS256' },
  { SVC_OTEL_ENABLED: 'perhaps' },
  { SVC_LOG_LEVEL: 'loud' },
  { SVC_CHANGES_RETENTION: '0' },
];

export const badSettings: Row = {
  name: 'bad-settings',
  promise:
    'Settings that are missing, empty or wrong: exit 1 within two seconds, one message with each name, no secret.',
  trials: SETTINGS.length,
  brief: 4,
  async run({ startHostWith, trials, claim, tried, figures }) {
    for (const settings of SETTINGS.slice(0, trials)) {
      const begun = performance.now();
      const host = await startHostWith(settings);
      const { code } = await host.exited;
      const seconds = (performance.now() - begun) / 1000;
      const message = host.errors();
      const [name = ''] = Object.keys(settings).slice(-1);
      figures.exits += 1;
      claim(`${name}: exit code 1`, code === 1, code);
      claim(`${name}: within two seconds`, seconds <= 2, seconds);
      claim(`${name}: the message names it`, message.includes(name), message);
      claim(`${name}: and no secret`, !(message + host.printed()).includes('hunter2'), message);
      tried();
    }
  },
};

/** What a collector can be like: away, hanging, failing. */
const COLLECTORS = ['away', 'hanging', 'failing'] as const;

/** Rounds in which p99 is measured with the service without its collector, and with one that has it. */
const ROUNDS = 20;

/** What it may cost, and by how much two processes alike may differ for as long as they run. */
const RATIO_LIMIT = 1.05 * 1.06;

export const collectorAway: Row = {
  name: 'collector-away',
  promise:
    'The trace collector is away, hangs or fails: every request is served, memory is flat, and p99 is no more than 5 % longer (beyond the 6 % by which two processes alike differ) than with a collector; of 20 rounds, fifteen above that are too many.',
  trials: COLLECTORS.length,
  async run({ startService, openLedger, trials, claim, tried, defer, figures }) {
    const [receiver, wellReceiver] = [await startOtlpReceiver(), await startOtlpReceiver()];
    defer(receiver.stop);
    defer(wellReceiver.stop);
    const traced = (endpoint: string) => ({
      SVC_OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    // Of all of them, since each finds what those before have written.
    const ledger = openLedger();
    const well = await startService(traced(wellReceiver.endpoint), { ledger });
    for (const mood of COLLECTORS.slice(0, trials)) {
      receiver.answer((response) => {
        if (mood === 'failing') response.writeHead(500).end();
      });
      const endpoint = mood === 'away' ? 'http://127.0.0.1:9' : receiver.endpoint;
      const service = await startService(traced(endpoint), { ledger });
      // Both, so that one is as warm as the other.
      const loads = [service, well].map((one) => one.startLoad(8));
      await sleep(3000);
      const warm = service.memoryGrowth();
      await sleep(12_000);
      await Promise.all(loads.map((load) => load.stop()));
      const grown = service.memoryGrowth() - warm;
      figures.memoryChange = Math.max(figures.memoryChange, grown);
      claim(`every request is served while it is ${mood}`, service.ledger.refusedAfter(0) === 0);
      claim(`memory is flat while it is ${mood}`, grown < 60, grown);
      await service.checkBooks();
      const ratios: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const { p99 } = await readSteadily(service, { seconds: 0.5 });
        ratios.push(p99 / (await readSteadily(well, { seconds: 0.5 })).p99);
      }
      // One round is chance on a machine that is shared; that three of four are above it is not.
      const isAbove = ratios.filter((ratio) => ratio > RATIO_LIMIT).length >= 0.75 * ROUNDS;
      claim(`p99 is no longer while it is ${mood}`, !isAbove, ratios);
      tried();
    }
  },
};
