import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Attributes, metrics } from '@opentelemetry/api';
import { METRICS, type MetricOf } from './metric-list.ts';
import { type RequestHead, requestAttributes } from './request-attributes.ts';

/** The sources of the metrics, which are read at each export. */
export type Readings = {
  readonly requestsInFlight: () => Iterable<RequestHead>;
  /** Number of requests that an overloaded instance refused before all checks, by caller and reason. */
  readonly requestsRefused: Readonly<
    Record<(typeof CALLERS)[number], Readonly<Record<(typeof REASONS)[number], number>>>
  >;
  readonly connections: () => { readonly idle: number; readonly used: number; readonly waitedFor: number };
  readonly tokenCache: { readonly hits: number; readonly misses: number };
  /** Number of replayed requests with an idempotency key. */
  readonly idempotency: { readonly replays: number };
  readonly jwksRefreshes: { readonly succeeded: number; readonly failed: number };
  /** In seconds. */
  readonly jwksAge: () => number;
  readonly statementsRetried: Readonly<Record<(typeof RETRIES)[number], number>>;
  /** In seconds. */
  readonly drainAge: () => number;
  readonly linesDropped: () => number;
  readonly changesWaiting: () => number;
  /** Reads from PostgreSQL. If this fails, the metric is not reported. */
  readonly changesUnnumbered: () => Promise<{ readonly count: number; readonly age: number }>;
};

/** The reasons for which an overloaded instance refuses a request. */
const REASONS = ['no_room', 'waited_too_long', 'caller_left'] as const;

/** Whether the caller of a refused request was known by a verified token. */
const CALLERS = ['known', 'unverified'] as const;

/** The reasons for which a statement is sent again. */
const RETRIES = ['connection_lost', 'deadlock', 'serialization_failure'] as const;

const NANOSECONDS = 1e9;

/** Registers all metrics of an instance except the durations of requests. It costs nothing per request. */
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

  const countByAttributes = createRequestCounts();
  upDownCounter('http.server.active_requests').addCallback((result) => {
    for (const { count, attributes } of countByAttributes(requestsInFlight()))
      result.observe(count, attributes);
  });
  upDownCounter('db.client.connection.pending_requests').addCallback((result) =>
    result.observe(connections().waitedFor, POOL),
  );
  upDownCounter('db.client.connection.count').addCallback((result) => {
    const { idle, used } = connections();
    result.observe(idle, { ...POOL, 'db.client.connection.state': 'idle' });
    result.observe(used, { ...POOL, 'db.client.connection.state': 'used' });
  });
  for (const reason of RETRIES) counter('statements.retried', () => statementsRetried[reason], { reason });
  upDownCounter('process.memory.usage').addCallback((result) => result.observe(process.memoryUsage.rss()));
  gauge('nodejs.eventloop.delay.p99', delaySinceLastExport);
  counter('token_cache.lookups', () => tokenCache.hits, { outcome: 'hit' });
  counter('token_cache.lookups', () => tokenCache.misses, { outcome: 'miss' });
  counter('jwks.refreshes', () => jwksRefreshes.succeeded, { outcome: 'succeeded' });
  counter('jwks.refreshes', () => jwksRefreshes.failed, { outcome: 'failed' });
  gauge('jwks.age', jwksAge);
  counter('idempotency.replays', () => idempotency.replays);
  for (const caller of CALLERS) {
    for (const reason of REASONS)
      counter('requests.refused', () => requestsRefused[caller][reason], { reason, caller });
  }
  gauge('drain.age', drainAge);
  counter('log.lines.dropped', linesDropped);
  gauge('changes.waiting', changesWaiting);
  const [count, age] = [created('changes.unnumbered'), created('changes.unnumbered.age')];
  meter.addBatchObservableCallback(
    async (result) => {
      // Read only while a connection is idle, so that no other statement waits for it.
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

  function gauge(name: MetricOf<'gauge'>, read: () => number): void {
    created(name).addCallback((result) => result.observe(read()));
  }

  function upDownCounter(name: MetricOf<'up-down counter'>) {
    const { unit, meaning: description } = METRICS[name];
    return meter.createObservableUpDownCounter(name, { unit, description });
  }

  function counter(name: MetricOf<'counter'>, read: () => number, attributes: Attributes = {}): void {
    const { unit, meaning: description } = METRICS[name];
    const observed = meter.createObservableCounter(name, { unit, description });
    observed.addCallback((result) => result.observe(read(), attributes));
  }
}

/** All connections to PostgreSQL count as one pool: SVC_POSTGRES_POOL_SIZE limits them together. */
const POOL = { 'db.client.connection.pool.name': 'postgresql' };

/**
 * Counts requests by their attributes. Attributes that occurred once are reported from then on, so that they go back to
 * 0, and those of a GET from the start, so that an idle instance reports 0.
 */
function createRequestCounts() {
  const counts = new Map<string, { count: number; readonly attributes: Attributes }>();
  const countsFor = (request: RequestHead) => {
    const attributes = requestAttributes(request);
    const key = Object.values(attributes).join(' ');
    const found = counts.get(key) ?? { count: 0, attributes };
    counts.set(key, found);
    return found;
  };
  countsFor({ headers: {}, requestContext: { http: { method: 'GET' } } });
  return (requests: Iterable<RequestHead>) => {
    for (const entry of counts.values()) entry.count = 0;
    for (const request of requests) countsFor(request).count += 1;
    return counts.values();
  };
}
