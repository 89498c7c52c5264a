import { connect, type Socket } from 'node:net';
import { percentiles } from '../lab/meters/percentile.ts';
import { type Job, type Outcome, PATIENCE, TOKEN } from './load.ts';

/**
 * A process of its own that loads the service: it sends when a request is due, however many are unanswered, as long as a
 * connection is free. A caller that is not answered in time gives up, closes its connection and opens another.
 */

/** A connection, and when the request on it was sent; 0 while it is free. */
type Caller = { socket: Socket; sentAt: number };

/** Milliseconds between two looks at what is due. */
const TICK = 1;

process.once('message', async (jobs: readonly Job[]) => {
  process.send?.(await Promise.all(jobs.map(load)), () => process.exit(0));
});

async function load(job: Job): Promise<Outcome> {
  const { port, requests, tokens, renewAfter = Number.POSITIVE_INFINITY, connections, rate, seconds } = job;
  const latencies = { answered: [] as number[], refused: [] as number[] };
  const counts = { due: 0, sent: 0, noConnection: 0, givenUp: 0, broken: 0, other: 0 };
  const free: Caller[] = [];
  const busy = new Set<Caller>();
  const perSecond: number[] = [];
  const bySecond: { due: number; inTime: number }[] = [];
  const payloads = requests.map((request) => Buffer.from(request));
  let started = performance.now();
  let isOver = false;

  function open(caller: Caller): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      caller.socket = socket;
      caller.sentAt = 0;
      let received = '';
      socket.once('connect', () => {
        release(caller);
        resolve();
      });
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1');
        const status = statusOfWhole(received);
        if (status === undefined) return;
        received = '';
        take(caller, status);
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        if (caller.socket !== socket || isOver) return;
        if (caller.sentAt > 0) counts.broken += 1;
        replace(caller);
        resolve();
      });
    });
  }

  function take(caller: Caller, status: number): void {
    const now = performance.now();
    const latency = now - caller.sentAt;
    busy.delete(caller);
    caller.sentAt = 0;
    if (status === 503) latencies.refused.push(latency);
    else if (status >= 200 && status < 300) {
      latencies.answered.push(latency);
      const second = Math.floor((now - started) / 1000);
      if (latency <= PATIENCE) {
        perSecond[second] = (perSecond[second] ?? 0) + 1;
        secondOf(now - latency).inTime += 1;
      }
    } else counts.other += 1;
    release(caller);
  }

  function release(caller: Caller): void {
    if (rate === 0 && !isOver) send(caller);
    else free.push(caller);
  }

  function replace(caller: Caller): void {
    busy.delete(caller);
    const index = caller.sentAt === 0 ? free.indexOf(caller) : -1;
    if (index >= 0) free.splice(index, 1);
    void open(caller);
  }

  function send(caller: Caller): void {
    const payload = nextPayload();
    caller.sentAt = performance.now();
    if (rate === 0) secondOf(caller.sentAt).due += 1;
    counts.sent += 1;
    busy.add(caller);
    caller.socket.write(payload);
  }

  function nextPayload(): Buffer | string {
    const index = counts.sent % payloads.length;
    if (!tokens) return payloads[index] as Buffer;
    const passed =
      renewAfter > 0 ? Math.floor((performance.now() - started) / 1000 / renewAfter) : counts.sent;
    return (requests[index] as string).replace(TOKEN, tokens[passed % tokens.length] as string);
  }

  function secondOf(time: number): { due: number; inTime: number } {
    const second = Math.max(Math.floor((time - started) / 1000), 0);
    while (bySecond.length <= second) bySecond.push({ due: 0, inTime: 0 });
    return bySecond[second] as { due: number; inTime: number };
  }

  function giveUp(): void {
    const now = performance.now();
    // In the order in which they were sent.
    for (const caller of busy) {
      if (now - caller.sentAt <= PATIENCE) break;
      counts.givenUp += 1;
      const { socket } = caller;
      replace(caller);
      socket.destroy();
    }
  }

  const callers = Array.from({ length: connections }, () => ({}) as Caller);
  for (let at = 0; at < connections; at += 50) await Promise.all(callers.slice(at, at + 50).map(open));
  if (rate > 0) counts.sent = 0;
  started = performance.now();
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsed = (performance.now() - started) / 1000;
      giveUp();
      if (elapsed >= seconds) {
        clearInterval(timer);
        resolve();
        return;
      }
      const due = Math.floor(elapsed * rate);
      while (counts.due < due) {
        counts.due += 1;
        secondOf(performance.now()).due += 1;
        const caller = free.shift();
        if (caller) send(caller);
        else counts.noConnection += 1;
      }
    }, TICK);
  });
  // What is under way is still answered, or given up.
  const end = performance.now();
  isOver = true;
  while (busy.size > 0 && performance.now() - end < PATIENCE + 100) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  counts.givenUp += busy.size;
  for (const { socket } of callers) socket.destroy();
  return {
    ...counts,
    seconds: (end - started) / 1000,
    answered: latencies.answered.filter((latency) => latency <= PATIENCE).length,
    late: latencies.answered.filter((latency) => latency > PATIENCE).length,
    refused: latencies.refused.length,
    bySecond,
    answerLatency: quantiles(latencies.answered),
    refusalLatency: quantiles(latencies.refused),
    worstSecond: Math.min(
      ...Array.from({ length: Math.floor(seconds) }, (_, second) => perSecond[second] ?? 0),
    ),
  };
}

/** The status of an answer that has come whole. */
function statusOfWhole(received: string): number | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const at = received.search(/content-length: /i);
  const length = at >= 0 && at < end ? Number.parseInt(received.slice(at + 16, at + 24), 10) : 0;
  return received.length >= end + 4 + length ? Number(received.slice(9, 12)) : undefined;
}

function quantiles(latencies: number[]): { p50: number; p99: number; longest: number } {
  const [p50, p99, longest] = percentiles(latencies, 0.5, 0.99, 1).map((time) => Math.round(time) || 0);
  return { p50, p99, longest } as { p50: number; p99: number; longest: number };
}
