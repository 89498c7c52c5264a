import { monitorEventLoopDelay } from 'node:perf_hooks';
import { metrics } from '@opentelemetry/api';
import type { Service } from '../service.ts';

/** What an instance can count that the service itself does not know. */
type Counts = { readonly requestsInFlight: () => number; readonly linesDropped: () => number };

const NANOSECONDS = 1e9;

/** Registers what is read whenever metrics are exported; does nothing per request. */
export function observe(
  { database, tokenCache, keySet }: Service,
  { requestsInFlight, linesDropped }: Counts,
): void {
  const meter = metrics.getMeter('user-management-service');
  const eventLoop = monitorEventLoopDelay({ resolution: 10 });
  eventLoop.enable();

  gauge('http.server.active_requests', '{request}', requestsInFlight);
  gauge('db.client.connection.pending_requests', '{request}', () => database.pool.waitingCount);
  gauge('nodejs.eventloop.delay.p99', 's', () => eventLoop.percentile(99) / NANOSECONDS);
  counter('token_cache.hits', '{token}', () => tokenCache.hits);
  counter('token_cache.misses', '{token}', () => tokenCache.misses);
  counter('jwks.refreshes', '{refresh}', () => keySet.refreshes.succeeded, { outcome: 'succeeded' });
  counter('jwks.refreshes', '{refresh}', () => keySet.refreshes.failed, { outcome: 'failed' });
  counter('log.lines.dropped', '{line}', linesDropped);
  const connections = meter.createObservableGauge('db.client.connection.count', { unit: '{connection}' });
  connections.addCallback((result) => {
    const { idleCount, totalCount } = database.pool;
    result.observe(idleCount, { 'db.client.connection.state': 'idle' });
    result.observe(totalCount - idleCount, { 'db.client.connection.state': 'used' });
  });

  function gauge(name: string, unit: string, read: () => number): void {
    meter.createObservableGauge(name, { unit }).addCallback((result) => result.observe(read()));
  }

  function counter(name: string, unit: string, read: () => number, attributes = {}): void {
    meter.createObservableCounter(name, { unit }).addCallback((result) => result.observe(read(), attributes));
  }
}
