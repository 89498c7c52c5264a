import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../host/development/free-port.ts';
import { drainEvents, endedBy } from '../../stage/shutdown.ts';
import { defineExperiment } from '../experiment.ts';
import { allChanges } from '../ledger/changes.ts';
import { faultsInHistory, storedUsers } from '../ledger/history.ts';
import { Ledger } from '../ledger/ledger.ts';
import { startCallers } from '../load/callers.ts';
import { startBalancer } from '../stage/balancer.ts';
import type { ServiceUnderFault, Stage } from '../stage/stage.ts';

/** Restarts behind each balancer. */
const RESTARTS = 6;
const WRITERS = 24;

/** Between two requests of a writer: writers must be busy all the time, but not wear out the machine. */
const PAUSE_MS = 40;

/** Alternately, from when an instance is ready until the other one is restarted. */
const PAUSES_MS = [0, 2500];

/**
 * Two instances behind the examples for nginx and haproxy are restarted one after the other, as soon as the other one is
 * ready or later, while callers write: no request may be lost, and every acknowledged user must be in PostgreSQL, as it
 * was acknowledged. Prints one line of JSON for each balancer.
 */
export const experiment = defineExperiment({
  promise:
    'Restarts of two instances behind nginx or haproxy lose no request, with the examples as they are.',
  takes: 'a minute',
  needs: 'nginx, haproxy',
  async run({ print, printRow, openStage }) {
    const openNext = () => openStage({ seed: 1, trials: RESTARTS });
    const outcomes = [
      await restartBehind('nginx', await openNext(), print),
      await restartBehind('haproxy', await openNext(), print),
    ];
    printRow(outcomes.map(({ sent, lost }) => `${sent} sent, ${lost} lost`).join('; '), '0 lost');
    return outcomes.every(({ isKept }) => isKept);
  },
});

async function restartBehind(
  program: 'nginx' | 'haproxy',
  { postgres, startService, token, random }: Stage,
  print: (line: string) => void,
) {
  const startAt = (port: number) => startService({ SVC_PORT: String(port) }, { isOnItsOwn: true });
  const ports = [await freePort(), await freePort()] as const;
  const instances = await Promise.all(ports.map(startAt));
  const balancer = await startBalancer(program, ports);

  const ledger = new Ledger();
  const load = startCallers({ url: balancer.url, token, ledger }, WRITERS, random, {
    areAlone: true,
    pauseMs: PAUSE_MS,
  });
  const exits: number[] = [];
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    await sleep(PAUSES_MS[restart % PAUSES_MS.length]);
    const place = restart % ports.length;
    exits.push(await stop(instances[place] as ServiceUnderFault));
    instances[place] = await startAt(ports[place] as number);
  }
  await load.stop();
  const changes = await allChanges({ url: balancer.url, token });
  await balancer.stop();
  await Promise.all(instances.map(stop));
  const faults = faultsInHistory(ledger, changes, await storedUsers(postgres));

  const refused = ledger.refusedByStatus();
  const sent = ledger.entries.length;
  const lost = Object.values(refused).reduce((sum, count) => sum + count, 0);
  print(
    JSON.stringify({
      row: `rolling restarts of two instances behind ${program}`,
      sent,
      lost,
      refused_by_status: refused,
      table_faults: faults.length,
      longest_response_ms: Math.round(ledger.longestResponse()),
      longest_exit_seconds: Number(Math.max(...exits).toFixed(2)),
      ...(faults.length > 0 && { faults: faults.slice(0, 5) }),
    }),
  );
  return { sent, lost, isKept: lost === 0 && faults.length === 0 && sent > 1000 };
}

/** Ends an instance as an orchestrator does, and demands that it ends in order. Resolves with the seconds that it took. */
async function stop(instance: ServiceUnderFault): Promise<number> {
  const { code, seconds } = await endedBy('SIGTERM', instance);
  const drains = drainEvents(instance).map(({ event }) => event);
  if (code !== 0 || drains.join() !== 'shutdown_drained') {
    throw new Error(`an instance ended with code ${code}, ${drains}: ${instance.errors()}`);
  }
  return seconds;
}
