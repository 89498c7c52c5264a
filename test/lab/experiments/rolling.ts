import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../../host/development/free-port.ts';
import { startPostgres } from '../../../host/development/postgres.ts';
import { removeDataFolder } from '../../stage/data-folder.ts';
import { environmentOf } from '../../stage/service.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { Ledger } from '../ledger/ledger.ts';
import { faultsInTable, storedUsers } from '../ledger/stored-users.ts';
import { seededRandom } from '../load/random.ts';
import { startLoad } from '../load/writers.ts';
import { DETECTION, startBalancer } from '../stage/balancer.ts';
import { startInstance } from '../stage/instance.ts';

/**
 * Two instances behind haproxy are restarted one after the other while callers write: no request may be lost, and
 * every user that was acknowledged has to be in PostgreSQL, as it was acknowledged. Prints one line of JSON; ends
 * with exit code 1 when anything was lost.
 */
const RESTARTS = Number(process.env.ROLLING_RESTARTS || 8);
const WRITERS = 24;

/** Milliseconds between two users of a writer: writers must be busy all the time, but not wear out the machine. */
const PAUSE = 150;

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
const token = await issuer.sign({ exp: inAnHour() });
const ledger = new Ledger();
const load = startLoad({
  url: balancer.url,
  token: async () => token,
  ledger,
  writers: WRITERS,
  random: seededRandom(1),
  pause: PAUSE,
});
const exits: number[] = [];
for (let restart = 0; restart < RESTARTS; restart += 1) {
  const instance = instances[restart % instances.length];
  if (instance) exits.push(await instance.restart());
  await balancer.untilAllUp();
}
await load.stop();
const seconds = (performance.now() - begun) / 1000;
const tableFaults = faultsInTable(ledger, await usersIn(postgres.url));

await balancer.stop();
await Promise.all(instances.map((instance) => instance.stop()));
await Promise.all([issuer.stop(), postgres.stop()]);
await removeDataFolder(join(folder, 'postgres'));
await rm(folder, { recursive: true, force: true });

const refused = ledger.refusedByStatus();
const sent = ledger.entries.length;
const lost = Object.values(refused).reduce((sum, count) => sum + count, 0);
const creates = ledger.acknowledged.filter(({ operation }) => operation === 'create');
const isGood = lost === 0 && tableFaults.length === 0 && sent > 1000;
process.stdout.write(
  `${JSON.stringify({
    row: 'rolling restarts of two instances behind haproxy',
    trials: exits.length,
    sent,
    ok: sent - lost,
    lost,
    refused_by_status: refused,
    acknowledged_creates: creates.length,
    table_faults: tableFaults.length,
    checks_timed_out: balancer.checksTimedOut(),
    longest_answer_ms: Math.round(ledger.longestAnswer()),
    longest_exit_seconds: Number(Math.max(...exits).toFixed(2)),
    seconds: Number(seconds.toFixed(1)),
    ...(tableFaults.length > 0 && { faults: tableFaults.slice(0, 5) }),
  })}\n`,
);
process.exitCode = isGood ? 0 : 1;

function inAnHour(): number {
  return Math.floor(Date.now() / 1000) + 3600;
}

async function usersIn(connectionString: string) {
  const client = new pg.Client({ connectionString, ssl: false });
  await client.connect();
  const users = await storedUsers({ query: async (sql) => (await client.query(sql)).rows });
  await client.end();
  return users;
}
