import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Attributes, metrics } from '@opentelemetry/api';
import { METRICS, type MetricOf } from './metric-list.ts';

/** What metrics are read from, at the moment of an export. */
export type Readings = {
  readonly requestsInFlight: () => number;
  /** By an overloaded instance, before all checks. */
  readonly requestsRefused: Readonly<Record<(typeof REASONS)[number], number>>;
  readonly connections: () => { readonly idle: number; readonly used: number; readonly waitedFor: number };
  readonly tokenCache: { readonly hits: number; readonly misses: number };
  /** Requests under an idempotency key that were answered again. */
  readonly idempotency: { readonly replays: number };
  readonly jwksRefreshes: { readonly succeeded: number; readonly failed: number };
  /** In seconds. */
  readonly jwksAge: () => number;
  readonly statementsRetried: Readonly<Record<(typeof RETRIES)[number], number>>;
  /** In seconds. */
  readonly drainAge: () => number;
  readonly linesDropped: () => number;
  readonly changesWaiting: () => number;
  /** Asks PostgreSQL; what fails is not told. */
  readonly changesUnnumbered: () => Promise<{ readonly count: number; readonly age: number }>;
};

/** Why an overloaded instance refuses a request. */
const REASONS = ['no_room', 'waited_too_long', 'caller_left'] as const;

/** Why a statement is sent again. */
const RETRIES = ['connection_lost', 'deadlock', 'serialization_failure'] as const;

const NANOSECONDS = 1e9;

/** Registers the metrics of an instance beside the durations of requests; costs nothing per request. */
export function observe({
  requestsInFlight,
  requestsRefused,
  connections,
  tokenCache,
  idempotency,
  jwksRefreshes,
  jwksAge,
  statementsRetried,
  drainAge,
  linesDropped,
  changesWaiting,
  changesUnnumbered,
}: Readings): void {
  const meter = metrics.getMeter('user-management-service');
  const eventLoop = monitorEventLoopDelay({ resolution: 10 });
  eventLoop.enable();

  gauge('http.server.active_requests', requestsInFlight);
  gauge('db.client.connection.pending_requests', () => connections().waitedFor);
  gauge('db.client.connection.count', () => connections().idle, { [STATE]: 'idle' });
  gauge('db.client.connection.count', () => connections().used, { [STATE]: 'used' });
  for (const reason of RETRIES) counter('statements.retried', () => statementsRetried[reason], { reason });
  gauge('process.memory.usage', () => process.memoryUsage.rss());
  gauge('nodejs.eventloop.delay.p99', delaySinceLastExport);
  counter('token_cache.lookups', () => tokenCache.hits, { outcome: 'hit' });
  counter('token_cache.lookups', () => tokenCache.misses, { outcome: 'miss' });
  counter('jwks.refreshes', () => jwksRefreshes.succeeded, { outcome: 'succeeded' });
  counter('jwks.refreshes', () => jwksRefreshes.failed, { outcome: 'failed' });
  gauge('jwks.age', jwksAge);
  counter('idempotency.replays', () => idempotency.replays);
  for (const reason of REASONS) {
    counter('requests.refused', () => requestsRefused[reason], { reason });
  }
  gauge('drain.age', drainAge);
  counter('log.lines.dropped', linesDropped);
  gauge('changes.waiting', changesWaiting);
  const [count, age] = [created('changes.unnumbered'), created('changes.unnumbered.age')];
  meter.addBatchObservableCallback(
    async (result) => {
      // Only where that takes a connection from nobody.
      const { idle, used } = connections();
      if (idle === 0 && used > 0) return;
      const unnumbered = await changesUnnumbered().catch(() => undefined);
      if (!unnumbered) return;
      result.observe(count, unnumbered.count);
      result.observe(age, unnumbered.age);
    },
    [count, age],
  );

  function delaySinceLastExport(): number {
    const delay = eventLoop.percentile(99) / NANOSECONDS;
    eventLoop.reset();
    return delay;
  }

  function created(name: MetricOf<'gauge'>) {
    const { unit, meaning: description } = METRICS[name];
    return meter.createObservableGauge(name, { unit, description });
  }

  function gauge(name: MetricOf<'gauge'>, read: () => number, attributes: Attributes = {}): void {
    created(name).addCallback((result) => result.observe(read(), attributes));
  }

  function counter(name: MetricOf<'counter'>, read: () => number, attributes: Attributes = {}): void {
    const { unit, meaning: description } = METRICS[name];
    const observed = meter.createObservableCounter(name, { unit, description });
    observed.addCallback((result) => result.observe(read(), attributes));
  }
}

const STATE = 'db.client.connection.state';
