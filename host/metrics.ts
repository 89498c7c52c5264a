import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Attributes, Meter } from '@opentelemetry/api';
import { ChangeNumbering } from '../lib/changes/numbering.ts';
import type { LineWriter } from '../lib/observability/line-writer.ts';
import { METRICS, type MetricOf } from '../lib/observability/metric-list.ts';
import { type RequestHead, requestAttributes } from '../lib/observability/request-attributes.ts';
import type { ExchangeParts } from './exchange.ts';

type ObservedParts = Pick<ExchangeParts, 'service' | 'inFlight' | 'admissions'> & {
  readonly lines: LineWriter;
};

type Observation = readonly [value: number, attributes?: Attributes];

/** How a metric is created that is read at each export. A histogram is recorded at each request instead. */
const CREATE = {
  gauge: 'createObservableGauge',
  counter: 'createObservableCounter',
  'up-down counter': 'createObservableUpDownCounter',
} as const;

/** All connections for requests count as one pool: SVC_POSTGRES_POOL_SIZE limits them together. */
const POOL = { 'db.client.connection.pool.name': 'postgresql' };

type ObservedMetric = MetricOf<keyof typeof CREATE>;

/** One statement reads both. */
type UnnumberedMetric = 'changes.unnumbered' | 'changes.unnumbered.age';

const NANOSECONDS_PER_SECOND = 1e9;

/** Registers all metrics of an instance except the durations of requests. They are read at each export. */
export function observe(meter: Meter, { service, inFlight, admissions, lines }: ObservedParts): void {
  const { database, tokenVerifier, keySet, changes, idempotency } = service;
  const countRequests = createRequestCounts();
  const eventLoop = monitorEventLoopDelay({ resolution: 10 });
  eventLoop.enable();

  const readings: Readonly<Record<Exclude<ObservedMetric, UnnumberedMetric>, () => Iterable<Observation>>> = {
    'http.server.active_requests': () => countRequests(inFlight.requests()),
    'db.client.connection.pending_requests': () => [[database.sessions().waitedFor, POOL]],
    'db.client.connection.count': () =>
      (['idle', 'used'] as const).map((state) => [
        database.sessions()[state],
        { ...POOL, 'db.client.connection.state': state },
      ]),
    'statements.retried': () => listCounts('reason', database.statements.retried),
    'process.memory.usage': () => [[process.memoryUsage.rss()]],
    'nodejs.eventloop.delay.p99': () => {
      const delay = eventLoop.percentile(99) / NANOSECONDS_PER_SECOND;
      eventLoop.reset();
      return [[delay]];
    },
    'token_cache.lookups': () => listCounts('outcome', tokenVerifier.lookups),
    'jwks.refreshes': () => listCounts('outcome', keySet.refreshes),
    'jwks.age': () => [[keySet.age]],
    'idempotency.replays': () => [[idempotency.replays]],
    'requests.refused': () =>
      Object.entries(admissions.refusals.byCaller).flatMap(([caller, counts]) =>
        listCounts('reason', counts, { caller }),
      ),
    'drain.age': () => [[inFlight.drainAge]],
    'log.lines.dropped': () => [[lines.dropped]],
    'changes.waiting': () => [[changes.waiting]],
  };
  for (const [name, read] of Object.entries(readings)) {
    create(meter, name as ObservedMetric).addCallback((result) => {
      for (const [value, attributes] of read()) result.observe(value, attributes);
    });
  }

  const numbering = new ChangeNumbering(database.statements);
  const [count, age] = [create(meter, 'changes.unnumbered'), create(meter, 'changes.unnumbered.age')];
  meter.addBatchObservableCallback(
    async (result) => {
      // Not while all open connections are in use, so that other statements do not wait for it.
      const { idle, used } = database.sessions();
      if (idle === 0 && used > 0) return;
      // If PostgreSQL cannot be asked, these metrics are not reported.
      const unnumbered = await numbering.countUnnumbered().catch(() => undefined);
      if (!unnumbered) return;
      result.observe(count, unnumbered.count);
      result.observe(age, unnumbered.age);
    },
    [count, age],
  );
}

function create(meter: Meter, name: ObservedMetric) {
  const { kind, unit, meaning: description } = METRICS[name];
  return meter[CREATE[kind]](name, { unit, description });
}

/** A count for each value of an attribute, besides further attributes. */
function listCounts(
  attribute: string,
  counts: Readonly<Record<string, number>>,
  further: Attributes = {},
): readonly Observation[] {
  return Object.entries(counts).map(([value, count]) => [count, { [attribute]: value, ...further }]);
}

/**
 * Counts requests by their attributes. Attributes that occurred once are reported from then on, so that they go back to
 * 0, and those of a GET from the start, so that an idle instance reports 0.
 */
function createRequestCounts(): (requests: Iterable<RequestHead>) => readonly Observation[] {
  const keyOf = (request: RequestHead) => JSON.stringify(requestAttributes(request));
  const keys = new Set([keyOf({ headers: {}, requestContext: { http: { method: 'GET' } } })]);
  return (requests) => {
    const byKey = Map.groupBy(requests, keyOf);
    for (const key of byKey.keys()) keys.add(key);
    return Array.from(keys, (key) => [byKey.get(key)?.length ?? 0, JSON.parse(key)]);
  };
}
