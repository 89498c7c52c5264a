import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Attributes, metrics } from '@opentelemetry/api';

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
  readonly linesDropped: () => number;
};

/** Why an overloaded instance refuses a request. */
const REASONS = ['no_room', 'waited_too_long', 'caller_left'] as const;

const NANOSECONDS = 1e9;

/** Registers the metrics of an instance beside the duration of its requests; costs nothing per request. */
export function observe({
  requestsInFlight,
  requestsRefused,
  connections,
  tokenCache,
  idempotency,
  jwksRefreshes,
  linesDropped,
}: Readings): void {
  const meter = metrics.getMeter('user-management-service');
  const eventLoop = monitorEventLoopDelay({ resolution: 10 });
  eventLoop.enable();

  gauge('http.server.active_requests', '{request}', requestsInFlight);
  gauge('db.client.connection.pending_requests', '{request}', () => connections().waitedFor);
  gauge('db.client.connection.count', '{connection}', () => connections().idle, { [STATE]: 'idle' });
  gauge('db.client.connection.count', '{connection}', () => connections().used, { [STATE]: 'used' });
  gauge('nodejs.eventloop.delay.p99', 's', delaySinceLastExport);
  counter('token_cache.lookups', '{lookup}', () => tokenCache.hits, { outcome: 'hit' });
  counter('token_cache.lookups', '{lookup}', () => tokenCache.misses, { outcome: 'miss' });
  counter('jwks.refreshes', '{refresh}', () => jwksRefreshes.succeeded, { outcome: 'succeeded' });
  counter('jwks.refreshes', '{refresh}', () => jwksRefreshes.failed, { outcome: 'failed' });
  counter('idempotency.replays', '{request}', () => idempotency.replays);
  for (const reason of REASONS) {
    counter('requests.refused', '{request}', () => requestsRefused[reason], { reason });
  }
  counter('log.lines.dropped', '{line}', linesDropped);

  function delaySinceLastExport(): number {
    const delay = eventLoop.percentile(99) / NANOSECONDS;
    eventLoop.reset();
    return delay;
  }

  function gauge(name: string, unit: string, read: () => number, attributes: Attributes = {}): void {
    meter.createObservableGauge(name, { unit }).addCallback((result) => result.observe(read(), attributes));
  }

  function counter(name: string, unit: string, read: () => number, attributes: Attributes = {}): void {
    meter.createObservableCounter(name, { unit }).addCallback((result) => result.observe(read(), attributes));
  }
}

const STATE = 'db.client.connection.state';
