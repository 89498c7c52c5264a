import { freePort } from '../../../host/development/free-port.ts';
import { drainEvents, endedBy } from '../../stage/shutdown.ts';
import { defineExperiment } from '../experiment.ts';
import { Ledger } from '../ledger/ledger.ts';
import { faultsInTable, storedUsers } from '../ledger/stored-users.ts';
import { startLoad } from '../load/writers.ts';
import { DETECTION, startBalancer } from '../stage/balancer.ts';
import type { ServiceUnderFault } from '../stage/stage.ts';

const RESTARTS = Number(process.env.ROLLING_RESTARTS || 8);
const WRITERS = 24;

/** Milliseconds between two users of a writer: writers must be busy all the time, but not wear out the machine. */
const PAUSE = 150;

/** Longer than the balancer can take to see that /ready is 503; 0 shows what is lost without the delay. */
const READINESS_DELAY = process.env.ROLLING_READINESS_DELAY || String(DETECTION + 0.5);

/**
 * Two instances behind haproxy are restarted one after the other while callers write: no request may be lost, and every
 * acknowledged user must be in PostgreSQL, as it was acknowledged. Prints one line of JSON.
 */
export const experiment = defineExperiment({
  name: 'rolling',
  promise: 'Restarts of two instances behind a load balancer lose no request.',
  takes: 'a minute',
  needs: 'haproxy',
  async run({ print, defer, openStage }) {
    const { postgres, startService, token, random } = await openStage({ seed: 1, trials: RESTARTS });
    const startAt = (port: number) =>
      startService(
        { SVC_PORT: String(port), SVC_SHUTDOWN_READINESS_DELAY: READINESS_DELAY },
        { isOnItsOwn: true },
      );
    const ports = [await freePort(), await freePort()] as const;
    const instances = await Promise.all(ports.map(startAt));
    const balancer = await startBalancer(ports);
    defer(balancer.stop);
    await balancer.untilAllUp();

    const begun = performance.now();
    const ledger = new Ledger();
    const load = startLoad({ url: balancer.url, token, ledger, writers: WRITERS, random, pause: PAUSE });
    const exits: number[] = [];
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const place = restart % ports.length;
      exits.push(await stop(instances[place] as ServiceUnderFault));
      instances[place] = await startAt(ports[place] as number);
      await balancer.untilAllUp();
    }
    await load.stop();
    const seconds = (performance.now() - begun) / 1000;
    const tableFaults = faultsInTable(ledger, await storedUsers(postgres));
    await Promise.all(instances.map(stop));

    const refused = ledger.refusedByStatus();
    const sent = ledger.entries.length;
    const lost = Object.values(refused).reduce((sum, count) => sum + count, 0);
    const creates = ledger.acknowledged.filter(({ operation }) => operation === 'create');
    print(
      JSON.stringify({
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
      }),
    );
    return lost === 0 && tableFaults.length === 0 && sent > 1000;
  },
});

/** Ends an instance as an orchestrator does, and demands that it ends in order. Resolves with the seconds that it took. */
async function stop(instance: ServiceUnderFault): Promise<number> {
  const { code, seconds } = await endedBy('SIGTERM', instance);
  const drains = drainEvents(instance).map(({ event }) => event);
  if (code !== 0 || drains.join() !== 'shutdown_drained') {
    throw new Error(`an instance ended with code ${code}, ${drains}: ${instance.errors()}`);
  }
  return seconds;
}
