/**
 * Facts of OpenTelemetry's semantic conventions about the metrics and spans of the service.
 *
 * Source: https://github.com/open-telemetry/semantic-conventions (`model/http`, `model/database`, `model/process`,
 * `model/nodejs`, `model/service`). Version: that of the package `@opentelemetry/semantic-conventions`, which has the
 * names, but no instruments, units or requirement levels. The test compares names and version with the package, so
 * that an upgrade requires a new reading of the source.
 */
export const VERSION = '1.45.0';

type ConventionalMetric = {
  readonly instrument: 'counter' | 'up-down counter' | 'gauge' | 'histogram';
  readonly unit: string;
  /** On every point. */
  readonly required: readonly string[];
  /** On points to which they apply. */
  readonly others: readonly string[];
};

/** Metrics by name. */
export const CONVENTIONAL_METRICS: Readonly<Record<string, ConventionalMetric>> = {
  'http.server.request.duration': {
    instrument: 'histogram',
    unit: 's',
    required: ['http.request.method', 'url.scheme'],
    others: [
      ...['error.type', 'http.response.status_code', 'http.route'],
      ...['network.protocol.name', 'network.protocol.version'],
    ],
  },
  'http.server.active_requests': {
    instrument: 'up-down counter',
    unit: '{request}',
    required: ['http.request.method', 'url.scheme'],
    others: [],
  },
  'http.client.request.duration': {
    instrument: 'histogram',
    unit: 's',
    required: ['http.request.method', 'server.address', 'server.port'],
    others: [
      ...['error.type', 'http.response.status_code', 'url.scheme'],
      ...['network.protocol.name', 'network.protocol.version'],
    ],
  },
  'db.client.connection.count': {
    instrument: 'up-down counter',
    unit: '{connection}',
    required: ['db.client.connection.pool.name', 'db.client.connection.state'],
    others: [],
  },
  'db.client.connection.pending_requests': {
    instrument: 'up-down counter',
    unit: '{request}',
    required: ['db.client.connection.pool.name'],
    others: [],
  },
  'process.memory.usage': { instrument: 'up-down counter', unit: 'By', required: [], others: [] },
  'nodejs.eventloop.delay.p99': { instrument: 'gauge', unit: 's', required: [], others: [] },
};

/** Attributes of spans by kind of span: on every span, and on spans to which they apply. */
export const CONVENTIONAL_SPANS = {
  httpServer: {
    required: ['http.request.method', 'url.path', 'url.scheme'],
    others: [
      ...['error.type', 'http.request.method_original', 'http.response.status_code', 'http.route'],
      ...['client.address', 'network.peer.address', 'network.peer.port', 'network.protocol.name'],
      ...['network.protocol.version', 'server.address', 'server.port', 'url.query', 'user_agent.original'],
    ],
  },
  httpClient: {
    required: ['http.request.method', 'server.address', 'server.port', 'url.full'],
    others: [
      ...['error.type', 'http.request.method_original', 'http.request.resend_count'],
      ...['http.response.status_code', 'network.peer.address', 'network.peer.port', 'network.protocol.name'],
      ...['network.protocol.version', 'url.scheme', 'user_agent.original'],
      // The registry has these, but not for client spans. The instrumentation of undici adds them.
      ...['url.path', 'url.query'],
    ],
  },
  databaseClient: {
    required: ['db.system.name'],
    others: [
      ...['db.collection.name', 'db.namespace', 'db.operation.name', 'db.query.summary', 'db.query.text'],
      ...['db.response.status_code', 'error.type', 'server.address', 'server.port'],
    ],
  },
} as const;

/** Attributes that are numbers. All others are texts. */
export const CONVENTIONAL_NUMBERS = [
  ...['http.request.resend_count', 'http.response.status_code', 'network.peer.port', 'server.port'],
];

/** Values of an attribute, if the convention lists them. */
export const CONVENTIONAL_VALUES: Readonly<Record<string, readonly string[]>> = {
  'db.client.connection.state': ['idle', 'used'],
  'http.request.method': [
    ...['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE'],
    '_OTHER',
  ],
};
