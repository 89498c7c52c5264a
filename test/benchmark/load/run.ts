import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, openConnection } from '../../lab/load/connection.ts';
import { startPaced, startUnpaced } from '../../lab/load/pacing.ts';
import { goBeforeOthers } from '../../lab/load/precedence.ts';
import { residentMemory } from '../../lab/meters/memory.ts';
import { percentiles } from '../../lab/meters/percentile.ts';
import { openWindow } from '../../lab/meters/window.ts';
import { workloads } from '../workloads/index.ts';
import type { Job, Outcome } from './job.ts';
import { wireOf } from './wire.ts';

/** Milliseconds between two looks at the server's memory. */
const LOOK_EVERY = 100;

const tokens = new Map<string, readonly string[]>();

/** Loads the server, counting after the warm-up, until the time is over and all is answered. */
export async function runLoad(job: Job): Promise<Outcome> {
  const workload = workloads.find(({ name }) => name === job.workload);
  if (!workload) throw new Error(`there is no workload ${job.workload}`);
  const nextRequest = workload.requests({
    anyUser: () => 1 + Math.floor(Math.random() * job.users),
    token: job.token,
    freshTokens: tokensIn(job.tokensFile),
    begin: job.begin,
    prepared: job.prepared,
  });
  const faults: Record<string, number> = {};
  const fault = (kind: string) => {
    faults[kind] = (faults[kind] ?? 0) + 1;
  };
  const open = Array.from({ length: job.connections }, () => openConnection(job.port, broken));
  const connections = await Promise.all(open);
  let latencies: number[] = [];
  let [sent, inFlight] = [0, 0];
  let isOver = false;
  const { promise: allAnswered, resolve: endWait } = Promise.withResolvers<void>();

  function broken(reason: string): void {
    fault(reason);
    // It is not asked again; what was in flight on it will not be answered.
    isOver = true;
    endWait();
  }

  function ask(connection: Connection, due: number, then: () => void): void {
    sent += 1;
    inFlight += 1;
    connection.send(wireOf(nextRequest()), (status) => {
      inFlight -= 1;
      if (status !== workload?.status) fault(`status ${status}`);
      latencies.push(performance.now() - due);
      if (!isOver) then();
      else if (inFlight === 0) endWait();
    });
  }

  const goBack = job.rate ? goBeforeOthers() : undefined;
  const pacing = job.rate ? startPaced(connections, job.rate, ask) : startUnpaced(connections, ask);
  await sleep(job.warmUp * 1000);
  let memory = 0;
  const looking = setInterval(() => {
    memory = Math.max(memory, residentMemory(job.watched.server));
  }, LOOK_EVERY);
  latencies = [];
  const close = openWindow(job.watched);
  await sleep(job.seconds * 1000);
  const used = close();
  const counted = latencies;
  latencies = [];
  isOver = true;
  clearInterval(looking);
  clearInterval(pacing);
  if (inFlight > 0 && Object.keys(faults).length === 0) await allAnswered;
  for (const connection of connections) connection.close();
  goBack?.();
  const [p50 = 0, p99 = 0] = percentiles(counted, 0.5, 0.99);
  return { sent, answered: counted.length, p50, p99, used, memory, faults };
}

function tokensIn(file: string): readonly string[] {
  const known = tokens.get(file) ?? (JSON.parse(readFileSync(file, 'utf8')) as readonly string[]);
  tokens.set(file, known);
  return known;
}
