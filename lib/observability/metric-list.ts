/** Description of a metric in `infra/metrics.md`. */
type Described = {
  readonly kind: 'gauge' | 'counter' | 'up-down counter' | 'histogram';
  readonly unit: string;
  /** Names of its attributes, and their values if there are few. */
  readonly attributes?: string;
  readonly meaning: string;
};

/** All metrics. The instruments, `infra/metrics.md`, the alarms and the dashboard read this list. */
export const METRICS = {
  'http.server.request.duration': {
    kind: 'histogram',
    unit: 's',
    attributes:
      '`http.request.method`, `url.scheme`, `http.route`, `http.response.status_code`, of a 5xx `error.type`',
    meaning: 'Duration of requests. Its count is the number of requests.',
  },
  'http.server.active_requests': {
    kind: 'up-down counter',
    unit: '{request}',
    attributes: '`http.request.method`, `url.scheme`',
    meaning: 'Requests in flight. Requests that wait for changes are not counted.',
  },
  'requests.refused': {
    kind: 'counter',
    unit: '{request}',
    attributes: '`reason`: `no_room`, `waited_too_long`, `caller_left`; `caller`: `known`, `unverified`',
    meaning: 'Requests that an overloaded instance refused.',
  },
  'db.client.connection.count': {
    kind: 'up-down counter',
    unit: '{connection}',
    attributes:
      '`db.client.connection.pool.name`: `postgresql`, `db.client.connection.state`: `idle`, `used`',
    meaning: 'Connections to PostgreSQL.',
  },
  'db.client.connection.pending_requests': {
    kind: 'up-down counter',
    unit: '{request}',
    attributes: '`db.client.connection.pool.name`: `postgresql`',
    meaning:
      'Statements that wait for a connection, including those that are being collected into one statement.',
  },
  'statements.retried': {
    kind: 'counter',
    unit: '{statement}',
    attributes: '`reason`: `connection_lost`, `deadlock`, `serialization_failure`',
    meaning: 'Statements that were sent again.',
  },
  'process.memory.usage': {
    kind: 'up-down counter',
    unit: 'By',
    meaning: 'Physical memory of the process (RSS).',
  },
  'nodejs.eventloop.delay.p99': {
    kind: 'gauge',
    unit: 's',
    meaning: '99th percentile of the event-loop delay since the last export.',
  },
  'token_cache.lookups': {
    kind: 'counter',
    unit: '{lookup}',
    attributes: '`outcome`: `hit`, `miss`',
    meaning: 'Lookups in the cache of verified tokens.',
  },
  'jwks.refreshes': {
    kind: 'counter',
    unit: '{refresh}',
    attributes: '`outcome`: `succeeded`, `failed`',
    meaning: "Fetches of the identity provider's keys.",
  },
  'jwks.age': {
    kind: 'gauge',
    unit: 's',
    meaning: 'Time since the keys were last fetched. Before the first fetch: time since the start.',
  },
  'http.client.request.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: 'as OpenTelemetry defines them',
    meaning:
      "Duration of the requests for the identity provider's keys, recorded by OpenTelemetry's instrumentation.",
  },
  'drain.age': {
    kind: 'gauge',
    unit: 's',
    meaning: 'Time since the drain began; 0 while there is no drain.',
  },
  'log.lines.dropped': {
    kind: 'counter',
    unit: '{line}',
    meaning: 'Log lines that were dropped because standard output did not accept them.',
  },
  'changes.unnumbered': {
    kind: 'gauge',
    unit: '{change}',
    meaning:
      'Changes without a position. They get one when the changes are read, or at the next cleanup. Not reported while all connections are in use.',
  },
  'changes.unnumbered.age': {
    kind: 'gauge',
    unit: 's',
    meaning: 'Age of the oldest change without a position; 0 if every change has one.',
  },
  'changes.waiting': {
    kind: 'gauge',
    unit: '{request}',
    meaning: 'Requests that wait for changes, 1,000 at most.',
  },
  'idempotency.replays': {
    kind: 'counter',
    unit: '{request}',
    meaning: 'Requests that repeated the response to an earlier request with the same `Idempotency-Key`.',
  },
} as const satisfies Readonly<Record<string, Described>>;

/** The names of all metrics of these kinds. */
export type MetricOf<Kind extends Described['kind']> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[keyof typeof METRICS];
