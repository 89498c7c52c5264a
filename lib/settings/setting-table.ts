import * as z from 'zod';
import * as form from './setting-forms.ts';

/** Maximum duration in seconds. Timers of Node.js cannot wait longer. */
const MAX_SECONDS = 2_000_000;

/** A duration in milliseconds that a timer of Node.js can wait. It would fire at once for a longer one. */
const milliseconds = form.whole(1, 2 ** 31 - 1, 'milliseconds').optional();

const encoding = form
  .choice('http/protobuf', 'http/json')
  .optional()
  .meta({ shownDefault: '`http/protobuf`' });

/** Each setting: its place in `Settings`, its variable, accepted values, default and description. */
export const DECLARED = {
  environment: setting('SVC_ENV', form.choice('development', 'production').default('development')).describe(
    'Log format, and whether the documentation pages are served.',
  ),
  logLevel: setting(
    'SVC_LOG_LEVEL',
    form.anyCase('debug', 'info', 'warning', 'error').default('info'),
  ).describe('Minimum log level.'),
  host: setting('SVC_HOST', form.host.default('0.0.0.0')).describe('Address to listen on.'),
  port: setting('SVC_PORT', form.whole(0, 65_535).default(8000)).describe(
    'Port to listen on; 0 means any free port.',
  ),
  bodyLimit: setting('SVC_BODY_LIMIT', form.whole(1024, 10_485_760, 'bytes').default(65_536)).describe(
    'Maximum size of a request body.',
  ),
  keepAliveTimeout: setting('SVC_KEEP_ALIVE_TIMEOUT', form.whole(1, 3600, 'seconds').default(75)).describe(
    'Time after which an idle connection is closed. It must be longer than the idle time of the balancer in front.',
  ),
  requestIdHeader: setting('SVC_REQUEST_ID_HEADER', form.headerName.default('X-Request-ID')).describe(
    'Header that carries the request ID, in requests and responses.',
  ),
  requireIfMatch: setting('SVC_REQUIRE_IF_MATCH', form.flag.default(false)).describe(
    'Whether PATCH and DELETE without `If-Match` are refused (428).',
  ),
  changesRetention: setting(
    'SVC_CHANGES_RETENTION',
    form.whole(1, 3650, 'days; changes can no longer be turned off').default(30),
  ).describe('How long changes are kept, the same for all instances.'),
  oauth: {
    jwksUri: setting('SVC_OAUTH_JWKS_URI', form.httpUrl).describe(
      "URL of the identity provider's public keys (JWKS).",
    ),
    issuer: setting('SVC_OAUTH_ISSUER', form.text()).describe('Required `iss` claim of a token.'),
    audience: setting('SVC_OAUTH_AUDIENCE', form.texts).describe(
      'Required `aud` claim of a token: one of these. If the claim is a list, one member must be.',
    ),
    rolesClaim: setting('SVC_OAUTH_ROLES_CLAIM', form.text('a claim name').default('roles')).describe(
      'Claim that holds the roles. Use `scope` for providers with scopes, and a dotted name for a nested claim.',
    ),
    deleteRole: setting(
      'SVC_OAUTH_DELETE_ROLE',
      form.choice('users.write', 'users.delete').default('users.write'),
    ).describe('Role that DELETE on a user requires. `users.delete` gives no other right.'),
    algorithms: setting('SVC_OAUTH_ALGORITHMS', form.algorithms.default([...form.ALGORITHMS])).describe(
      'Accepted signature algorithms. A key without `alg` is used for the first one that fits the key.',
    ),
    clockTolerance: setting('SVC_OAUTH_CLOCK_TOLERANCE', form.seconds(0, 300).default(0)).describe(
      'Clock skew tolerated for `exp` and `nbf`.',
    ),
    jwksRefresh: setting('SVC_OAUTH_JWKS_REFRESH', form.seconds(5, 3600).default(300)).describe(
      'Interval between two fetches of the keys.',
    ),
  },
  postgres: {
    hosts: setting('SVC_POSTGRES_HOST', form.hosts.default(['localhost'])).describe(
      'Host name or address of the PostgreSQL server. With several, the service uses the one that accepts writes.',
    ),
    ports: setting('SVC_POSTGRES_PORT', form.ports.default([5432])).describe(
      'Port of the PostgreSQL server.',
    ),
    user: setting('SVC_POSTGRES_USER', form.text().default('postgres')).describe('Role to connect as.'),
    password: setting('SVC_POSTGRES_PASSWORD', form.secret.default('')).describe('Password of the role.'),
    passwordFrom: setting('SVC_POSTGRES_PASSWORD_FROM', form.source.optional()).describe(
      'File or URL from which the password is read for each new session: a mounted secret, or the AWS Parameters and Secrets extension.',
    ),
    sessionToken: setting('AWS_SESSION_TOKEN', form.secret.optional()).describe(
      'Set by AWS Lambda. The service sends it to that extension.',
    ),
    database: setting('SVC_POSTGRES_DB', form.text().default('postgres')).describe('Database to connect to.'),
    sslMode: setting(
      'SVC_POSTGRES_SSLMODE',
      form.choice('disable', 'require', 'verify-full').default('disable'),
    ).describe('TLS mode: none, encrypted, or encrypted with the server certificate verified.'),
    poolSize: setting('SVC_POSTGRES_POOL_SIZE', form.whole(1, 200).default(10)).describe(
      'Maximum number of sessions for requests. Readiness uses one more. The default in AWS Lambda is 1.',
    ),
    poolTimeout: setting('SVC_POSTGRES_POOL_TIMEOUT', form.seconds(0.01, 60).default(1)).describe(
      'Maximum time that a statement waits before it is sent.',
    ),
    statementTimeout: setting('SVC_POSTGRES_STATEMENT_TIMEOUT', form.seconds(0.01, 600).default(4)).describe(
      'Maximum duration of a statement.',
    ),
    migrate: setting('SVC_POSTGRES_MIGRATE', form.flag.default(true)).describe(
      'Whether pending migrations run at start. If several instances start, one runs them. Never in AWS Lambda.',
    ),
    pooler: setting('SVC_POSTGRES_POOLER', form.choice('none', 'transaction').default('none')).describe(
      'Pooler in front of PostgreSQL. `transaction` is for PgBouncer in transaction mode and RDS Proxy, and is the default in AWS Lambda.',
    ),
    engine: setting(
      'SVC_POSTGRES_ENGINE',
      form.choice('postgresql', 'distributed').default('postgresql'),
    ).describe(
      'Engine. `distributed` is for PostgreSQL-compatible engines without advisory locks, DDL in transactions or session options.',
    ),
  },
  shutdown: {
    drainTimeout: setting(
      'SVC_SHUTDOWN_DRAIN_TIMEOUT',
      form.seconds(Number.NEGATIVE_INFINITY, MAX_SECONDS).default(30),
    ).describe('Maximum time to wait for requests in flight at shutdown. 0 or less skips the wait.'),
    readinessDelay: setting('SVC_SHUTDOWN_READINESS_DELAY', form.seconds(0, MAX_SECONDS).default(0)).describe(
      'Time between the first 503 of `/ready` and the start of the drain. Requests are served as before.',
    ),
    serverTimeout: setting('SVC_SHUTDOWN_SERVER_TIMEOUT', form.seconds(0, MAX_SECONDS).optional()).describe(
      'Time after the start of the drain at which requests in flight are cancelled.',
    ),
  },
  otel: {
    enabled: setting(
      'SVC_OTEL_ENABLED',
      form.flag.optional().meta({ shownDefault: '`true` in production, otherwise `false`' }),
    ).describe('Enables traces, and metrics if `OTEL_METRICS_EXPORTER` names an exporter.'),
    ...forEachSignal(
      'ENDPOINT',
      form.httpUrl.optional(),
      'URL of an OTLP receiver (HTTP). Without one, spans are written to standard output.',
    ),
    ...forEachSignal('PROTOCOL', encoding, 'OTLP encoding.'),
    tracesExporter: setting(
      'OTEL_TRACES_EXPORTER',
      form
        .choice('otlp', 'console', 'none')
        .optional()
        .meta({ shownDefault: '`otlp` with an endpoint, otherwise `console`' }),
    ).describe('Exporter of spans. `console` writes one JSON object per line.'),
    metricsExporter: setting(
      'OTEL_METRICS_EXPORTER',
      form.choice('otlp', 'prometheus', 'none').default('none'),
    ).describe('Exporter of metrics.'),
    logLevel: setting(
      'OTEL_LOG_LEVEL',
      form.anyCase('none', 'error', 'warn', 'info', 'debug', 'verbose', 'all').default('none'),
    ).describe("Minimum level of OpenTelemetry's own diagnostics, which are written to the log."),
  },
  /** Variables that the SDK of OpenTelemetry reads. They are checked because it ignores a value that it cannot use. */
  sdk: {
    ...forEachSignal('TIMEOUT', milliseconds, 'Time limit of an export.'),
    ...forEachSignal(
      'HEADERS',
      form.headerFields.optional(),
      'Header fields of requests to the OTLP receiver.',
    ),
    interval: setting('OTEL_METRIC_EXPORT_INTERVAL', milliseconds.meta({ shownDefault: '`60000`' })).describe(
      'Interval of pushed metrics.',
    ),
    timeout: setting('OTEL_METRIC_EXPORT_TIMEOUT', milliseconds.meta({ shownDefault: '`30000`' })).describe(
      'Time limit of pushed metrics.',
    ),
    prometheusHost: setting(
      'OTEL_EXPORTER_PROMETHEUS_HOST',
      form.host.optional().meta({ shownDefault: '`SVC_HOST`' }),
    ).describe('Address that Prometheus reads the metrics from.'),
    prometheusPort: setting(
      'OTEL_EXPORTER_PROMETHEUS_PORT',
      form.whole(1, 65_535).optional().meta({ shownDefault: '`9464`' }),
    ).describe('Port that Prometheus reads the metrics from.'),
    batchDelay: setting('OTEL_BSP_SCHEDULE_DELAY', milliseconds.meta({ shownDefault: '`5000`' })).describe(
      'Interval of exports of spans.',
    ),
    batchTimeout: setting('OTEL_BSP_EXPORT_TIMEOUT', milliseconds.meta({ shownDefault: '`30000`' })).describe(
      'Time limit of an export of spans.',
    ),
    queueSize: setting(
      'OTEL_BSP_MAX_QUEUE_SIZE',
      form.whole(1, 1_000_000).optional().meta({ shownDefault: '`2048`' }),
    ).describe('Maximum number of spans that wait to be exported.'),
    batchSize: setting(
      'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
      form.whole(1, 1_000_000).optional().meta({ shownDefault: '`512`' }),
    ).describe('Maximum number of spans of one export.'),
  },
  xray: setting('POWERTOOLS_TRACE_ENABLED', form.flag.default(false)).describe(
    'AWS Lambda only: enables AWS X-Ray when OpenTelemetry is off.',
  ),
};

/** All settings by their variables. `infra/docs/settings.md` is generated from them. */
export const SETTINGS: Readonly<Record<string, z.ZodType>> = Object.fromEntries(listSettings(DECLARED));

function setting<Schema extends z.ZodType>(variable: string, schema: Schema): Schema {
  return schema.meta({ variable });
}

/** A variable of OTLP for all signals, and one for each signal. */
function forEachSignal(what: string, schema: z.ZodType, meaning: string) {
  const entries = ['', '_TRACES', '_METRICS'].map((signal) => {
    const variable = `OTEL_EXPORTER_OTLP${signal}_${what}`;
    return [variable, setting(variable, schema).describe(meaning)] as const;
  });
  return Object.fromEntries(entries);
}

export function variableOf(schema: z.ZodType): string {
  return String(schema.meta()?.variable);
}

/** Settings by their places in `Settings`. */
export type SettingGroup = { readonly [name: string]: z.ZodType | SettingGroup };

function listSettings(group: SettingGroup): readonly (readonly [variable: string, z.ZodType])[] {
  return Object.values(group).flatMap((one) =>
    one instanceof z.ZodType ? [[variableOf(one), one]] : listSettings(one),
  );
}
