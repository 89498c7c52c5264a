import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, startCluster } from '../../failover/cluster.ts';
import { type ClusterFault, clusterFaults } from '../../failover/faults.ts';
import type { Replication } from '../../failover/node.ts';
import { startWays, type Way } from '../../failover/ways.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { defineExperiment, numberIn } from '../experiment.ts';
import { summed } from '../ledger/oracle.ts';
import { type Random, seededRandom } from '../load/random.ts';

const REPLICATIONS: readonly Replication[] = ['synchronous', 'asynchronous'];

/** Until another node must take writes, the time to live of the leader's lock included. */
const TAKEOVER_LIMIT_S = 60;

const FIRST_WRITE_LIMIT_MS = 1000;
const RESPONSE_LIMIT_MS = 5000;
const BEFORE_MS = 2000;
const AFTER_MS = 4000;

/**
 * Three nodes of PostgreSQL with Patroni lose their primary in every way, with synchronous and with asynchronous
 * replication, under a service that reaches them by way of haproxy and one that has a list of hosts. Prints a line of
 * JSON for each, and at last `N passed, N failed`. `--rounds <n>` does all of it n times.
 */
export const experiment = defineExperiment({
  promise: 'A failover of PostgreSQL loses no acknowledged write.',
  takes: '8 minutes',
  needs: 'Debian, its postgresql, and haproxy',
  options: {
    rounds: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(randomInt(1_000_000)) },
    fault: { type: 'string', multiple: true },
    replication: { type: 'string', multiple: true },
  },
  async run({ options, print, printRow, defer }) {
    const [rounds, seed] = [numberIn('rounds', options.rounds), numberIn('seed', options.seed)];
    const faults = clusterFaults.filter(({ name }) => options.fault?.includes(name) ?? true);
    const replications = REPLICATIONS.filter((name) => options.replication?.includes(name) ?? true);
    const random = seededRandom(seed);
    const outcomes: Outcome[] = [];
    const failures: string[] = [];
    print(JSON.stringify({ seed, rounds, faults: faults.length, replications }));
    for (const replication of replications) await runAll(replication);
    for (const failure of failures) print(`failed: ${failure}`);
    const passed = outcomes.filter((outcome) => outcome.faults.length === 0).length;
    const failed = outcomes.length - passed + (failures.length > 0 ? 1 : 0);
    print(`seed ${seed}`);
    const synchronous = outcomes.filter(({ replication }) => replication === 'synchronous');
    const lost = synchronous.reduce((sum, outcome) => sum + outcome.lost, 0);
    printRow(`${passed} passed, ${failed} failed; synchronous: ${lost} lost`, '0 failed, 0 lost');
    print(`${passed} passed, ${failed} failed`);
    return failed === 0 && passed > 0;

    async function runAll(replication: Replication): Promise<void> {
      await using undoing = new AsyncDisposableStack();
      const undoLater = (undo: () => unknown) => void undoing.defer(async () => void (await undo()));
      // After a signal, too.
      defer(() => undoing.disposeAsync());
      const cluster = await startCluster(replication, undoLater);
      const issuer = await startIssuer();
      undoLater(issuer.stop);
      await cluster.untilHealthy();
      const ways = await startWays(cluster, issuer, undoLater);
      for (let round = 0; round < rounds; round += 1) {
        for (const fault of faults) {
          try {
            const takeover = await loadDuring(fault, cluster, ways, random);
            for (const way of ways) {
              const outcome = await outcomeOf(replication, fault, way, takeover);
              outcomes.push(outcome);
              print(JSON.stringify(outcome));
            }
          } catch (error) {
            failures.push(`${replication}, ${fault.name}: ${(error as Error).message}`);
            for (const way of ways) await way.stopLoad();
          }
        }
      }
      for (const way of ways) {
        const found = await way.faultsAtLast();
        failures.push(...found.map((sentence) => `${replication}, ${way.name}: ${sentence}`));
      }
    }
  },
});

type Outcome = Awaited<ReturnType<typeof outcomeOf>>;

/** Brings a fault about while both services are loaded. Resolves with the moments of its begin and of the takeover. */
async function loadDuring(fault: ClusterFault, cluster: Cluster, ways: readonly Way[], random: Random) {
  await cluster.untilHealthy();
  const primary = await cluster.primary();
  for (const way of ways) way.startLoad(random);
  await sleep(BEFORE_MS);
  const begun = performance.now();
  const untilTakenOver = cluster.untilTakenOver(primary, TAKEOVER_LIMIT_S).then(() => performance.now());
  const [takenOver] = await Promise.all([untilTakenOver, fault.bringAbout(primary, cluster)]);
  await sleep(AFTER_MS);
  await fault.undo?.(primary);
  await cluster.untilHealthy();
  await sleep(BEFORE_MS);
  // Both, before one of the histories is judged: that takes so long that responses would seem late.
  for (const way of ways) await way.stopLoad();
  return { begun, takenOver };
}

async function outcomeOf(
  replication: Replication,
  fault: ClusterFault,
  way: Way,
  { begun, takenOver }: Awaited<ReturnType<typeof loadDuring>>,
) {
  // What a primary has not sent on is lost with it, unless it waits for a standby, or comes back itself.
  const mayLose = replication === 'asynchronous' && (fault.name === 'kill' || fault.name === 'freeze');
  const { ledger, restarts, lost, faults, doubtful } = await way.account();
  const successes = ledger.acknowledged.filter(({ answered }) => answered > takenOver);
  const first = Math.min(...successes.map(({ answered }) => answered)) - takenOver;
  const longest = ledger.longestResponse();
  // After a restart commits wait until a standby has come back, which is PostgreSQL's affair.
  const waitsForStandby = replication === 'synchronous' && fault.name === 'restart';
  const promises = {
    'the first write comes within a second of the promotion':
      first <= FIRST_WRITE_LIMIT_MS || waitsForStandby,
    'every answer comes within 5 seconds': longest <= RESPONSE_LIMIT_MS,
    'the service is not restarted': restarts === 0,
    'writes were acknowledged': ledger.acknowledged.length > 100,
  };
  return {
    replication,
    fault: fault.name,
    by: way.name,
    acknowledged: ledger.acknowledged.length,
    lost,
    in_doubt: doubtful,
    refused_by_status: ledger.refusedByStatus(),
    taken_over_ms: Math.round(takenOver - begun),
    first_write_ms: Math.round(first),
    longest_response_ms: Math.round(longest),
    restarts,
    faults: [
      ...Object.entries(promises).flatMap(([promise, holds]) => (holds ? [] : [promise])),
      ...(mayLose ? [] : summed(faults)),
    ],
  };
}
