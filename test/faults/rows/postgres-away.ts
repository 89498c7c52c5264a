import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { accountFor, runAs } from '../../../host/development/postgres/place.ts';
import { runLoads } from '../../lab/load/load.ts';
import { USERS, wireOf } from '../../lab/load/wire.ts';
import { cpuOf } from '../../lab/meters/cpu.ts';
import { medianOf } from '../../lab/meters/percentile.ts';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import { addressOf } from '../../stage/proxy.ts';
import { connectToDatabase } from '../../stage/rows.ts';
import { until } from '../../stage/until.ts';
import { databaseInterruptions, type Interruption, networkInterruptions } from '../interruptions.ts';
import type { Row } from '../run-row.ts';

const WRITERS = 32;

/** From the moment in which PostgreSQL is back. */
const FIRST_WRITE_LIMIT_MS = 1000;
/** While writes are refused as read-only, the service looks every quarter of a second, over a new session each second. */
const FIRST_WRITE_LIMIT_AFTER_READ_ONLY_MS = 1750;
const REFUSAL_LIMIT_MS = 2000;

const RESPONSE_LIMIT_MS = 5000;

/** What must hold while PostgreSQL is away. It resolves when that has lasted long enough. */
type Meanwhile = (service: ServiceUnderFault, stage: Stage) => Promise<unknown>;

type Interrupted = Omit<Row, 'run'> & {
  readonly meanwhile: Meanwhile;
  readonly firstWriteLimitMs?: number;
  /** Starts the service. Resolves with it, and with what begins the fault of a trial. */
  prepare(stage: Stage): Promise<readonly [ServiceUnderFault, (trial: number) => Promise<() => unknown>]>;
};

/** PostgreSQL is away under writers, and comes back, in each trial. */
const interrupted = ({
  meanwhile,
  firstWriteLimitMs = FIRST_WRITE_LIMIT_MS,
  prepare,
  ...row
}: Interrupted): Row => ({
  ...row,
  async run(stage) {
    const { tries, claim, recovered, postgres, random } = stage;
    const [service, begin] = await prepare(stage);
    const { ledger } = service;
    for (const trial of tries()) {
      const load = service.startLoad(WRITERS);
      await sleep(500 + random.below(1000));
      const refusedBefore = ledger.refusedAfter(0);
      const end = await begin(trial);
      await meanwhile(service, stage);
      await end();
      const ended = performance.now();
      await sleep(REFUSAL_LIMIT_MS + 500);
      await load.stop();
      claim('the fault costs some writes a 503', ledger.refusedAfter(0) > refusedBefore, trial);
      const writes = ledger.acknowledged.filter(({ answered }) => answered > ended);
      const first = Math.min(...writes.map(({ answered }) => answered)) - ended;
      recovered(first / 1000);
      claim(`the first write comes within ${firstWriteLimitMs} ms`, first <= firstWriteLimitMs, first);
      const late = ledger.refusedAfter(ended + REFUSAL_LIMIT_MS);
      claim('nothing is refused after two seconds', late === 0, late);
      // The service also has statements of its own, which take milliseconds.
      const active = () => postgres.countSessions("state = 'active'");
      const isIdle = until('no statement is left over', async () => (await active()) === 0, { seconds: 1 });
      claim('no statement is left over', await succeeds(isIdle), await active());
    }
    const longest = ledger.longestResponse();
    claim('every response comes within 5 seconds', longest <= RESPONSE_LIMIT_MS, longest);
    await service.checkBooks();
  },
});

/** Nothing is served but /health. */
const unavailable: Meanwhile = async (service, { claim }) => {
  const caller = service.caller();
  await until('operations are 503', async () => (await caller.read('?limit=1')).status === 503);
  caller.close();
  const [ready, health] = await Promise.all(
    ['/ready', '/health'].map(async (path) => (await fetch(service.url + path)).status),
  );
  claim('/ready is 503 and /health is 200', ready === 503 && health === 200, { ready, health });
};

/** Reads are served, and writes are not. */
const readOnlyMeanwhile: Meanwhile = async (service, { claim, postgres }) => {
  const caller = service.caller();
  const create = () =>
    caller.create({ email: `${crypto.randomUUID()}@example.com`, full_name: 'x'.repeat(200) });
  await until('writes are 503', async () => (await create()).status === 503, { every: 0 });
  const [row] = await postgres.query('SELECT id FROM users LIMIT 1', service.environment.SVC_POSTGRES_DB);
  const id = String(row?.id);
  // A connection that was ended meanwhile may cost one more.
  await until('reads are 200', async () => (await caller.read(id)).status === 200);
  const reads = await Promise.all(Array.from({ length: 20 }, () => caller.read(id)));
  const statuses = [...new Set(reads.map(({ status }) => status))];
  claim('reads are 200', statuses.join() === '200', statuses);
  caller.close();
};

/** The same service, with one of these faults after the other. */
const by =
  (...faults: readonly Interruption[]): Interrupted['prepare'] =>
  async (stage) => {
    const proxy = await stage.startProxy();
    const service = await stage.startService(addressOf(proxy));
    return [service, (trial) => (faults[trial % faults.length] as Interruption)({ ...stage, proxy })];
  };

/** A service whose role is not a superuser's, in a database of its own. Its sessions are refused in one way after the other. */
async function startAsOwner(stage: Stage) {
  await stage.postgres.query([
    'CREATE ROLE service LOGIN',
    'CREATE DATABASE owned OWNER service TEMPLATE template0',
  ]);
  const service = await stage.startService({ SVC_POSTGRES_USER: 'service', SVC_POSTGRES_DB: 'owned' });
  const faults = [takeConnections, refuseAccount, renameDatabase] as const;
  return [service, (trial: number) => (faults[trial % 3] as typeof takeConnections)(stage)] as const;
}

/** Ends the service's sessions until none is left, and runs statements as the administrator. */
async function alone({ postgres }: Stage, ...statements: readonly string[]): Promise<void> {
  await until('the service has no session', async () => {
    await postgres.terminate();
    return succeeds(postgres.query(statements));
  });
  await postgres.terminate();
}

const succeeds = (attempt: Promise<unknown>): Promise<boolean> =>
  attempt.then(
    () => true,
    () => false,
  );

/** In the order of `index.ts`. */
export const postgresAway: readonly Row[] = [
  interrupted({
    name: 'postgres-restarted',
    promise:
      'PostgreSQL restarts, or all of it is killed, under 32 writers: 503 meanwhile, service within a second, every acknowledged write kept.',
    trials: 30,
    brief: 2,
    meanwhile: unavailable,
    prepare: by(databaseInterruptions['postgres-restarted'], databaseInterruptions['postgres-crashed']),
  }),
  interrupted({
    name: 'postgres-frozen',
    promise:
      'PostgreSQL is stopped, or the network to it swallows everything, for 10 seconds: every response within 5, full service afterwards, no orphans.',
    trials: 6,
    brief: 2,
    meanwhile: () => sleep(10_000),
    prepare: by(
      databaseInterruptions['postgres-frozen'],
      networkInterruptions['network: accept and hang'] as Interruption,
    ),
  }),
  interrupted({
    name: 'postgres-network',
    promise:
      'The network to PostgreSQL is slow, cuts, closes, refuses or hangs: 503 at worst, nothing lost, recovery.',
    trials: 3 * Object.keys(networkInterruptions).length,
    brief: Object.keys(networkInterruptions).length,
    meanwhile: () => sleep(1500),
    prepare: by(...Object.values(networkInterruptions)),
  }),
  interrupted({
    name: 'read-only',
    promise: 'PostgreSQL is read-only, as after a failover: writes 503, reads 200, recovery by itself.',
    trials: 20,
    brief: 3,
    meanwhile: readOnlyMeanwhile,
    firstWriteLimitMs: FIRST_WRITE_LIMIT_AFTER_READ_ONLY_MS,
    prepare: by(databaseInterruptions['postgres-read-only']),
  }),
  interrupted({
    name: 'sessions-refused',
    promise:
      'PostgreSQL has no connection left, refuses the account or lacks the database: 503, and service again as soon as this ends.',
    trials: 15,
    brief: 3,
    postgres: { settings: { max_connections: 20 } },
    meanwhile: unavailable,
    prepare: startAsOwner,
  }),
  interrupted({
    name: 'disk-full',
    promise: 'The disk is full: writes 503, reads 200, and writes resume when there is room.',
    trials: 5,
    meanwhile: readOnlyMeanwhile,
    prepare: startOnSmallDisk,
  }),
];

async function takeConnections({ postgres }: Stage): Promise<() => unknown> {
  const taken: pg.Client[] = [];
  const take = async () => void taken.push(await connectToDatabase(postgres));
  // Whatever the service loses is taken, until there is none for it: those in reserve are not for its role.
  await until('all are taken', async () => {
    await postgres.terminate().catch(() => 0);
    return !(await succeeds(take()));
  });
  const takes: Promise<boolean>[] = [];
  const keep = setInterval(() => void takes.push(succeeds(take())), 5);
  await taken[0]?.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'service'");
  return async () => {
    clearInterval(keep);
    await Promise.all(takes);
    await Promise.all(taken.map((client) => client.end()));
  };
}

async function refuseAccount(stage: Stage): Promise<() => unknown> {
  await alone(stage, 'ALTER ROLE service NOLOGIN');
  return () => stage.postgres.query('ALTER ROLE service LOGIN');
}

async function renameDatabase(stage: Stage): Promise<() => unknown> {
  // Otherwise the service is back before the database is renamed, and PostgreSQL waits five seconds for it to go.
  await stage.postgres.query('ALTER DATABASE owned ALLOW_CONNECTIONS false');
  await alone(
    stage,
    'ALTER DATABASE owned RENAME TO elsewhere',
    'ALTER DATABASE elsewhere ALLOW_CONNECTIONS true',
  );
  return () => stage.postgres.query('ALTER DATABASE elsewhere RENAME TO owned');
}

/** The tables lie on the small disk, the log of writes does not: without that one PostgreSQL would end. */
async function startOnSmallDisk({ postgres, defer, startService }: Stage) {
  const folder = await mkdtemp(join(tmpdir(), 'user-management-small-'));
  await runAs({}, 'mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', folder]);
  defer(async () => {
    await runAs({}, 'umount', ['--lazy', folder]);
    await rm(folder, { recursive: true });
  });
  const place = join(folder, 'tables');
  await mkdir(place);
  const { uid = 0, gid = 0 } = await accountFor(postgres.dataFolder);
  await chown(place, uid, gid);
  await chmod(folder, 0o755);
  await postgres.query([
    `CREATE TABLESPACE small LOCATION '${place}'`,
    'CREATE DATABASE full_of TABLESPACE small',
  ]);
  const service = await startService({ SVC_POSTGRES_DB: 'full_of' });
  const begin = async () => {
    const filling = join(folder, 'filling');
    await writeFile(filling, Buffer.alloc(64 * 1024 * 1024)).catch(() => {});
    return () => rm(filling);
  };
  return [service, begin] as const;
}

export const backendsKilled: Row = {
  name: 'backends-killed',
  promise: 'Sessions that are killed under 32 writers cost those in flight a 503, and nothing else.',
  trials: 200,
  brief: 30,
  async run({ startService, postgres, tries, trials, random, claim }) {
    const service = await startService();
    const load = service.startLoad(WRITERS);
    let killed = 0;
    for (const _ of tries()) {
      await sleep(20 + random.below(100));
      killed += await postgres.terminate();
    }
    await load.stop();
    claim('sessions were killed', killed >= trials, killed);
    await service.checkBooks();
  },
};

/** Requests a second. A busier process takes less time for each, so that both must come at the same rate. */
const RATE = 200;

export const refusalsCost: Row = {
  name: 'refusals-cost',
  promise:
    'While PostgreSQL is stopped, a 503 costs at most 3 times the CPU time of /health at the same rate.',
  trials: 3,
  async run({ startService, postgres, token, tries, claim }) {
    const service = await startService({}, { isOnItsOwn: true });
    const health = wireOf({ method: 'GET', target: '/health' });
    const target = USERS + crypto.randomUUID();
    const update = wireOf({ method: 'PATCH', target, token: await token(), body: '{"full_name":"Ada"}' });
    const load = { port: Number(new URL(service.url).port), connections: 64, rate: RATE };
    async function costOf(request: string, seconds: number) {
      const before = cpuOf(service.processId);
      const [outcome] = await runLoads({ ...load, seconds, requests: { list: [request] } });
      const { answered = 0, refused = 0 } = outcome ?? {};
      return { answered, refused, each: (cpuOf(service.processId) - before) / (answered + refused) };
    }
    const ratios: number[] = [];
    const untilServed = () => until('updates are 404', async () => (await costOf(update, 2)).refused === 0);
    await untilServed();
    for (const _ of tries()) {
      await postgres.freeze();
      // The first ones wait until their sessions count as stuck.
      await costOf(update, 8);
      // In turns, because the speed of a machine changes within seconds.
      for (let turn = 0; turn < 5; turn += 1) {
        const [calm, refusal] = [await costOf(health, 2), await costOf(update, 2)];
        claim('all are 503', refusal.answered === 0 && refusal.refused > RATE, refusal);
        ratios.push(refusal.each / calm.each);
      }
      postgres.thaw();
      await untilServed();
    }
    claim('a 503 costs 3 times /health at most', medianOf(ratios) <= 3, ratios);
  },
};
