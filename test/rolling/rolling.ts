import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../host/development/free-port.ts';
import { type Postgres, startPostgres } from '../../host/development/postgres.ts';
import { removeDataFolder } from '../stage/data-folder.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { DETECTION, startBalancer } from './balancer.ts';
import { startCallers, type Tally } from './callers.ts';
import { startInstance } from './instance.ts';

/**
 * Two instances behind haproxy are restarted one after the other while callers write: no request may be lost, and
 * every user that was acknowledged has to be in PostgreSQL, as it was acknowledged. Prints one line of JSON; ends
 * with exit code 1 when anything was lost.
 */
const RESTARTS = Number(process.env.ROLLING_RESTARTS || 8);
const CALLERS = 24;

/** Longer than the balancer can take to see that /ready is 503; 0 shows what is lost without the delay. */
const READINESS_DELAY = process.env.ROLLING_READINESS_DELAY || String(DETECTION + 0.5);

const folder = await mkdtemp(join(tmpdir(), 'user-management-rolling-'));
const postgres = await startPostgres({ dataFolder: join(folder, 'postgres') });
const issuer = await startIssuer();
const variables = {
  ...environmentOf({ ...postgres, name: postgres.database, drop: async () => [] }, issuer),
  SVC_SHUTDOWN_READINESS_DELAY: READINESS_DELAY,
};
const ports = [await freePort(), await freePort()] as const;
const instances = await Promise.all(ports.map((port) => startInstance(port, variables)));
const balancer = await startBalancer(ports);
await balancer.untilAllUp();

const begun = performance.now();
const callers = startCallers({
  url: balancer.url,
  count: CALLERS,
  sign: () => issuer.sign({ exp: inAnHour() }),
});
const exits: number[] = [];
for (let restart = 0; restart < RESTARTS; restart += 1) {
  const instance = instances[restart % instances.length];
  if (instance) exits.push(await instance.restart());
  await balancer.untilAllUp();
}
const tally = await callers.stop();
const seconds = (performance.now() - begun) / 1000;
const stored = await differences(postgres, tally);

await balancer.stop();
await Promise.all(instances.map((instance) => instance.stop()));
await Promise.all([issuer.stop(), postgres.stop()]);
await removeDataFolder(join(folder, 'postgres'));
await rm(folder, { recursive: true, force: true });

const isGood =
  tally.lost === 0 && stored.missing + stored.different + stored.unknown === 0 && tally.sent > 1000;
process.stdout.write(
  `${JSON.stringify({
    row: 'rolling restarts of two instances behind haproxy',
    trials: exits.length,
    sent: tally.sent,
    ok: tally.ok,
    lost: tally.lost,
    refused_by_status: tally.refusedByStatus,
    acknowledged_creates: tally.users.size,
    ...stored,
    checks_timed_out: balancer.checksTimedOut(),
    longest_answer_ms: Math.round(tally.longestAnswer),
    longest_exit_seconds: Number(Math.max(...exits).toFixed(2)),
    seconds: Number(seconds.toFixed(1)),
    ...(tally.faults.length > 0 && { faults: tally.faults.slice(0, 5) }),
  })}\n`,
);
process.exitCode = isGood ? 0 : 1;

function inAnHour(): number {
  return Math.floor(Date.now() / 1000) + 3600;
}

/** Acknowledged users that are not there or not as they were acknowledged, and users that nobody was told of. */
async function differences({ url }: Postgres, { users }: Tally) {
  const client = new pg.Client({ connectionString: url, ssl: false });
  await client.connect();
  const { rows } = await client.query('SELECT id, full_name FROM users');
  await client.end();
  const stored = new Map(rows.map(({ id, full_name }) => [id, full_name]));
  const acknowledged = [...users];
  return {
    missing: acknowledged.filter(([id]) => !stored.has(id)).length,
    different: acknowledged.filter(([id, name]) => stored.has(id) && stored.get(id) !== name).length,
    unknown: [...stored.keys()].filter((id) => !users.has(id)).length,
  };
}
