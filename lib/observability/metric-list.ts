/** What README says of a metric, beside its name. */
type Described = {
  readonly kind: 'gauge' | 'counter' | 'up-down counter' | 'histogram';
  readonly unit: string;
  /** The attributes of its points, and their values where these are few. */
  readonly attributes?: string;
  readonly meaning: string;
};

/** Every metric: what makes them, and README's table, read it here. OpenTelemetry's names where it has them. */
export const METRICS = {
  'http.server.request.duration': {
    kind: 'histogram',
    unit: 's',
    attributes:
      '`http.request.method`, `url.scheme`, `http.route`, `http.response.status_code`, of a 5xx `error.type`',
    meaning: 'Duration of requests; their number is its count.',
  },
  'http.server.active_requests': {
    kind: 'up-down counter',
    unit: '{request}',
    attributes: '`http.request.method`, `url.scheme`',
    meaning: 'Requests in flight, without those that wait for changes.',
  },
  'requests.refused': {
    kind: 'counter',
    unit: '{request}',
    attributes: '`reason`: `no_room`, `waited_too_long`, `caller_left`',
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
    meaning: 'Statements that wait for a connection, those that gather to be one among them.',
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
    meaning: 'Physical memory of the process.',
  },
  'nodejs.eventloop.delay.p99': {
    kind: 'gauge',
    unit: 's',
    meaning: 'Delay of the event loop since the last export.',
  },
  'token_cache.lookups': {
    kind: 'counter',
    unit: '{lookup}',
    attributes: '`outcome`: `hit`, `miss`',
    meaning: 'Tokens that were known already, and that were not.',
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
    meaning: 'Time since these keys were fetched; before the first time, since the start.',
  },
  'http.client.request.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: 'those of OpenTelemetry',
    meaning: "Duration of these fetches, by OpenTelemetry's own instrumentation.",
  },
  'drain.age': {
    kind: 'gauge',
    unit: 's',
    meaning: 'How long the drain has been under way; 0 while there is none.',
  },
  'log.lines.dropped': {
    kind: 'counter',
    unit: '{line}',
    meaning: 'Lines that standard output did not take.',
  },
  'changes.unnumbered': {
    kind: 'gauge',
    unit: '{change}',
    meaning:
      'Changes without a position yet: they get one when the changes are read, or at maintenance. Not told while all connections are in use.',
  },
  'changes.unnumbered.age': {
    kind: 'gauge',
    unit: 's',
    meaning: 'Age of the oldest of these; 0 while there is none.',
  },
  'changes.waiting': {
    kind: 'gauge',
    unit: '{request}',
    meaning: 'Requests that wait for changes; at most 1,000.',
  },
  'idempotency.replays': {
    kind: 'counter',
    unit: '{request}',
    meaning: 'Requests that were answered again under their `Idempotency-Key`.',
  },
} as const satisfies Readonly<Record<string, Described>>;

/** The names of the metrics of a kind. */
export type MetricOf<Kind extends Described['kind']> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[keyof typeof METRICS];
