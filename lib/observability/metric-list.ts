/** Describes metrics of a kind. `attributes` has their names, and their values if there are few. */
function describe<Kind extends string>(kind: Kind) {
  return (unit: string, meaning: string, attributes = '') => ({ kind, unit, meaning, attributes });
}

const gauge = describe('gauge');
const counter = describe('counter');
const upDownCounter = describe('up-down counter');
const histogram = describe('histogram');

/** All metrics. The instruments, `infra/docs/metrics.md`, the alarms and the dashboard read this list. */
export const METRICS = {
  'http.server.request.duration': histogram(
    's',
    'Duration of requests. Its count is the number of requests.',
    '`http.request.method`, `url.scheme`, `http.route`, `http.response.status_code`, of a 5xx `error.type`',
  ),
  'http.server.active_requests': upDownCounter(
    '{request}',
    'Requests in flight. Requests that wait for changes are not counted.',
    '`http.request.method`, `url.scheme`',
  ),
  'requests.refused': counter(
    '{request}',
    'Requests that an overloaded instance refused.',
    '`reason`: `no_room`, `waited_too_long`, `caller_left`; `caller`: `known`, `unverified`',
  ),
  'db.client.connection.count': upDownCounter(
    '{connection}',
    'Sessions of PostgreSQL.',
    '`db.client.connection.pool.name`: `postgresql`, `db.client.connection.state`: `idle`, `used`',
  ),
  'db.client.connection.pending_requests': upDownCounter(
    '{request}',
    'Statements that wait for a session, including those that are being collected into one statement.',
    '`db.client.connection.pool.name`: `postgresql`',
  ),
  'statements.retried': counter(
    '{statement}',
    'Statements that were sent again after a lost session or a conflict.',
    '`reason`: `connection_lost`, `deadlock`, `serialization_failure`',
  ),
  'process.memory.usage': upDownCounter('By', 'Physical memory of the process (RSS).'),
  'nodejs.eventloop.delay.p99': gauge('s', '99th percentile of the event-loop delay since the last export.'),
  'token_cache.lookups': counter(
    '{lookup}',
    'Lookups in the cache of verified tokens.',
    '`outcome`: `hit`, `miss`',
  ),
  'jwks.refreshes': counter(
    '{refresh}',
    "Fetches of the identity provider's keys.",
    '`outcome`: `succeeded`, `failed`',
  ),
  'jwks.age': gauge(
    's',
    'Time since the keys were last fetched. Before the first fetch: time since the start.',
  ),
  'http.client.request.duration': histogram(
    's',
    "Duration of the requests for the identity provider's keys, recorded by OpenTelemetry's instrumentation.",
    'as OpenTelemetry defines them',
  ),
  'drain.age': gauge('s', 'Time since the drain began; 0 while there is no drain.'),
  'log.lines.dropped': counter(
    '{line}',
    'Log lines that were dropped because standard output did not accept them.',
  ),
  'changes.unnumbered': gauge(
    '{change}',
    'Changes without a position. They get one when the changes are read, or at the next cleanup. Not reported while all sessions are in use.',
  ),
  'changes.unnumbered.age': gauge(
    's',
    'Age of the oldest change without a position; 0 if every change has one.',
  ),
  'changes.waiting': gauge('{request}', 'Requests that wait for changes, 1,000 at most.'),
  'idempotency.replays': counter(
    '{request}',
    'Requests that repeated the response to an earlier request with the same `Idempotency-Key`.',
  ),
};

export type MetricOf<Kind extends string> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[keyof typeof METRICS];
