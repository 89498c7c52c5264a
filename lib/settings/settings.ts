import * as z from 'zod';
import {
  ALGORITHMS,
  algorithms,
  anyCase,
  choice,
  flag,
  headerName,
  hosts,
  httpUrl,
  ports,
  seconds,
  source,
  text,
  whole,
} from './setting-forms.ts';

/** Maximum duration in seconds. Timers of Node.js cannot wait longer. */
const MAX_SECONDS = 2_000_000;

const encoding = () => choice('http/protobuf', 'http/json');

const Shape = z.object({
  SVC_ENV: choice('development', 'production')
    .default('development')
    .describe('Log format, and whether the documentation pages are served.'),
  SVC_LOG_LEVEL: anyCase('debug', 'info', 'warning', 'error').default('info').describe('Minimum log level.'),
  SVC_HOST: text('an IP address or host name').default('0.0.0.0').describe('Address to listen on.'),
  SVC_PORT: whole(0, 65_535).default(8000).describe('Port to listen on; 0 means any free port.'),
  SVC_BODY_LIMIT: whole(1024, 10_485_760, 'bytes')
    .default(65_536)
    .describe('Maximum size of a request body.'),
  SVC_REQUEST_ID_HEADER: headerName()
    .default('X-Request-ID')
    .describe('Header that carries the request ID, in requests and responses.'),

  SVC_OAUTH_JWKS_URI: httpUrl().describe("URL of the identity provider's public keys (JWKS)."),
  SVC_OAUTH_ISSUER: text().describe('Required `iss` claim of a token.'),
  SVC_OAUTH_AUDIENCE: text().describe(
    'Required `aud` claim of a token. If the claim is a list, one member must be this value.',
  ),
  SVC_OAUTH_ROLES_CLAIM: text('a claim name')
    .default('roles')
    .describe(
      'Claim that holds the roles. Use `scope` for providers with scopes, and a dotted name for a nested claim.',
    ),
  SVC_OAUTH_DELETE_ROLE: choice('users.write', 'users.delete')
    .default('users.write')
    .describe('Role that DELETE on a user requires. `users.delete` gives no other right.'),
  SVC_OAUTH_ALGORITHMS: algorithms()
    .default([...ALGORITHMS])
    .describe(
      'Accepted signature algorithms. A key without `alg` is used for the first one that fits the key.',
    ),
  SVC_OAUTH_CLOCK_TOLERANCE: seconds(0, 300).default(0).describe('Clock skew tolerated for `exp` and `nbf`.'),
  SVC_OAUTH_JWKS_REFRESH: seconds(5, 3600).default(300).describe('Interval between two fetches of the keys.'),

  SVC_POSTGRES_HOST: hosts()
    .default(['localhost'])
    .describe(
      'Host name or address of the PostgreSQL server. With several, the service uses the one that accepts writes.',
    ),
  SVC_POSTGRES_PORT: ports().default([5432]).describe('Port of the PostgreSQL server.'),
  SVC_POSTGRES_USER: text().default('postgres').describe('Role to connect as.'),
  SVC_POSTGRES_PASSWORD: text().default('').describe('Password of the role.'),
  SVC_POSTGRES_PASSWORD_FROM: source()
    .optional()
    .describe(
      'File or URL from which the password is read for each new connection: a mounted secret, or the AWS Parameters and Secrets extension.',
    ),
  AWS_SESSION_TOKEN: text().optional().describe('Set by AWS Lambda. The service sends it to that extension.'),
  SVC_POSTGRES_DB: text().default('postgres').describe('Database to connect to.'),
  SVC_POSTGRES_SSLMODE: choice('disable', 'require', 'verify-full')
    .default('disable')
    .describe('TLS mode: none, encrypted, or encrypted with the server certificate verified.'),
  SVC_POSTGRES_POOL_SIZE: whole(1, 200)
    .default(10)
    .describe('Maximum number of connections of an instance. The default in AWS Lambda is 1.'),
  SVC_POSTGRES_POOL_TIMEOUT: seconds(0.01, 60)
    .default(1)
    .describe('Maximum time that a statement waits before it is sent.'),
  SVC_POSTGRES_STATEMENT_TIMEOUT: seconds(0.01, 600).default(4).describe('Maximum duration of a statement.'),
  SVC_REQUIRE_IF_MATCH: flag()
    .default(false)
    .describe('Whether PATCH and DELETE without `If-Match` are refused (428).'),
  SVC_CHANGES_RETENTION: whole(1, 3650, 'days; changes can no longer be turned off')
    .default(30)
    .describe('How long changes are kept, the same for all instances.'),
  SVC_POSTGRES_MIGRATE: flag()
    .default(true)
    .describe(
      'Whether pending migrations run at start. If several instances start, one runs them. Never in AWS Lambda.',
    ),
  SVC_POSTGRES_POOLER: choice('none', 'transaction')
    .default('none')
    .describe(
      'Pooler in front of PostgreSQL. `transaction` is for PgBouncer in transaction mode and RDS Proxy, and is the default in AWS Lambda.',
    ),
  SVC_POSTGRES_ENGINE: choice('postgresql', 'distributed')
    .default('postgresql')
    .describe(
      'Engine. `distributed` is for PostgreSQL-compatible engines without advisory locks, DDL in transactions or session options.',
    ),

  SVC_SHUTDOWN_DRAIN_TIMEOUT: seconds(Number.NEGATIVE_INFINITY, MAX_SECONDS)
    .default(30)
    .describe('Maximum time to wait for requests in flight at shutdown. 0 or less skips the wait.'),
  SVC_SHUTDOWN_READINESS_DELAY: seconds(0, MAX_SECONDS)
    .default(0)
    .describe(
      'Time between the first 503 of `/ready` and the start of the drain. Requests are served as before.',
    ),
  SVC_SHUTDOWN_SERVER_TIMEOUT: seconds(0, MAX_SECONDS)
    .optional()
    .describe('Time after the start of the drain at which requests in flight are cancelled.'),

  SVC_OTEL_ENABLED: flag()
    .optional()
    .meta({ shownDefault: '`true` in production, otherwise `false`' })
    .describe('Enables traces, and metrics if `OTEL_METRICS_EXPORTER` names an exporter.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl()
    .optional()
    .describe('URL of an OTLP receiver (HTTP). Without it, spans are written to standard output.'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl()
    .optional()
    .describe('URL of the OTLP receiver for traces, if it is another one.'),
  OTEL_EXPORTER_OTLP_PROTOCOL: encoding()
    .optional()
    .meta({ shownDefault: '`http/protobuf`' })
    .describe('OTLP encoding.'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: encoding().optional().describe('OTLP encoding of traces.'),
  OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: encoding().optional().describe('OTLP encoding of metrics.'),
  OTEL_TRACES_EXPORTER: choice('otlp', 'console', 'none')
    .optional()
    .meta({ shownDefault: '`otlp` with an endpoint, otherwise `console`' })
    .describe('Exporter of spans. `console` writes one JSON object per line.'),
  OTEL_METRICS_EXPORTER: choice('otlp', 'prometheus', 'none')
    .default('none')
    .describe('Exporter of metrics.'),
  OTEL_LOG_LEVEL: anyCase('none', 'error', 'warn', 'info', 'debug', 'verbose', 'all')
    .default('none')
    .describe("Minimum level of OpenTelemetry's own diagnostics, which are written to the log."),
  POWERTOOLS_TRACE_ENABLED: flag()
    .default(false)
    .describe('AWS Lambda only: enables AWS X-Ray when OpenTelemetry is off.'),
});

/** All settings: name, accepted values, default and description. `infra/settings.md` is generated from it. */
export const Environment = Shape.refine(
  ({ SVC_POSTGRES_HOST: hosts, SVC_POSTGRES_PORT: ports }) => [1, hosts.length].includes(ports.length),
  {
    path: ['SVC_POSTGRES_PORT'],
    error: 'one port for all hosts, or one for each',
    // If both are valid by themselves, whatever the other settings are.
    when({ value }) {
      const { SVC_POSTGRES_HOST, SVC_POSTGRES_PORT } = value as Partial<HostsAndPorts>;
      return Array.isArray(SVC_POSTGRES_HOST) && Array.isArray(SVC_POSTGRES_PORT);
    },
  },
);

/** The settings of one instance. Times are in seconds, sizes in bytes. */
export type Settings = ReturnType<typeof readSettings>;

/** Settings that are missing or not valid. The message names each setting and what it accepts, but no value. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Environment variables. */
export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads all settings together. An empty value counts as unset. `defaults` replace the defaults of the declaration: AWS
 * Lambda has some of its own.
 *
 * @throws {SettingsError} names every setting that is missing or not valid
 */
export function readSettings(environment: Variables = process.env, defaults: Variables = {}) {
  const given = { ...defaults, ...nonEmpty(environment) };
  const read = Environment.safeParse(given);
  if (!read.success) throw new SettingsError(faultsOf(read.error, given));
  const { data } = read;
  return {
    environment: data.SVC_ENV,
    logLevel: data.SVC_LOG_LEVEL,
    otel: {
      enabled: data.SVC_OTEL_ENABLED ?? data.SVC_ENV === 'production',
      ...spanExportOf(data),
      /** Whether the SDK must cut the attributes of spans, because a variable sets a limit for them. */
      limitsAttributes: Object.keys(given).some((name) => /^OTEL_(SPAN_)?ATTRIBUTE_/.test(name)),
      exportsMetrics: data.OTEL_METRICS_EXPORTER !== 'none',
      logLevel: data.OTEL_LOG_LEVEL,
    },
    oauth: {
      jwksUri: data.SVC_OAUTH_JWKS_URI,
      issuer: data.SVC_OAUTH_ISSUER,
      audience: data.SVC_OAUTH_AUDIENCE,
      rolesClaim: data.SVC_OAUTH_ROLES_CLAIM,
      deleteRole: data.SVC_OAUTH_DELETE_ROLE,
      algorithms: data.SVC_OAUTH_ALGORITHMS,
      clockTolerance: data.SVC_OAUTH_CLOCK_TOLERANCE,
      jwksRefresh: data.SVC_OAUTH_JWKS_REFRESH,
    },
    xray: data.POWERTOOLS_TRACE_ENABLED,
    requestIdHeader: data.SVC_REQUEST_ID_HEADER,
    bodyLimit: data.SVC_BODY_LIMIT,
    requireIfMatch: data.SVC_REQUIRE_IF_MATCH,
    changesRetention: data.SVC_CHANGES_RETENTION,
    host: data.SVC_HOST,
    port: data.SVC_PORT,
    postgres: {
      /** All named servers. The service uses the one that accepts writes. */
      servers: serversOf(data),
      user: data.SVC_POSTGRES_USER,
      password: data.SVC_POSTGRES_PASSWORD,
      passwordFrom: data.SVC_POSTGRES_PASSWORD_FROM,
      sessionToken: data.AWS_SESSION_TOKEN,
      database: data.SVC_POSTGRES_DB,
      sslMode: data.SVC_POSTGRES_SSLMODE,
      /** False if `disable` is only the default. */
      isSslModeSet: given.SVC_POSTGRES_SSLMODE !== undefined,
      poolSize: data.SVC_POSTGRES_POOL_SIZE,
      poolTimeout: data.SVC_POSTGRES_POOL_TIMEOUT,
      statementTimeout: data.SVC_POSTGRES_STATEMENT_TIMEOUT,
      migrate: data.SVC_POSTGRES_MIGRATE,
      pooler: data.SVC_POSTGRES_POOLER,
      engine: data.SVC_POSTGRES_ENGINE,
    },
    shutdown: {
      drainTimeout: data.SVC_SHUTDOWN_DRAIN_TIMEOUT,
      readinessDelay: data.SVC_SHUTDOWN_READINESS_DELAY,
      serverTimeout: data.SVC_SHUTDOWN_SERVER_TIMEOUT,
    },
    /** `SVC_*` names that no setting has. They cause a warning, so that a typo is visible. */
    unknown: Object.keys(given).filter((name) => name.startsWith('SVC_') && !(name in Environment.shape)),
  } as const;
}

/**
 * Runs `make` in an environment without the variables whose names match, and with `defaults` for unset variables. It is for
 * libraries that read the environment by themselves, without regard to the settings.
 */
export function withoutVariables<Made>(named: RegExp, make: () => Made, defaults: Variables = {}): Made {
  const { env } = process;
  const given = Object.entries(env).filter(([name, value]) => value !== '' && !named.test(name));
  process.env = { ...defaults, ...Object.fromEntries(given) };
  try {
    return make();
  } finally {
    process.env = env;
  }
}

/** Removes variables from the environment. It is for a library that reads them whenever it is loaded. */
export function forgetVariables(names: readonly string[]): void {
  for (const name of names) delete process.env[name];
}

type HostsAndPorts = Pick<z.output<typeof Shape>, 'SVC_POSTGRES_HOST' | 'SVC_POSTGRES_PORT'>;

/** Pairs hosts with ports. A single port applies to all hosts. */
function serversOf({ SVC_POSTGRES_HOST: hosts, SVC_POSTGRES_PORT: ports }: HostsAndPorts) {
  const servers = hosts.map((host, n) => ({ host, port: ports[n] ?? (ports[0] as number) }));
  return servers as unknown as readonly [Server, ...Server[]];
}

type Server = { readonly host: string; readonly port: number };

/** Spans are printed if no receiver is named, unless OTEL_TRACES_EXPORTER says otherwise. OTLP is protobuf by default. */
function spanExportOf(given: z.output<typeof Environment>) {
  const endpoint = given.OTEL_EXPORTER_OTLP_ENDPOINT ?? given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const exporter = given.OTEL_TRACES_EXPORTER ?? (endpoint ? 'otlp' : 'console');
  const encoding = given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? given.OTEL_EXPORTER_OTLP_PROTOCOL;
  return {
    printsSpans: exporter === 'console',
    exportsProtobuf: exporter === 'otlp' && encoding !== 'http/json',
  };
}

function nonEmpty(environment: Variables): Variables {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
}

function faultsOf(error: z.ZodError, given: Variables): string {
  const faults = error.issues.map(({ path: [name], message }) => {
    const isMissing = given[String(name)] === undefined;
    return `  ${String(name)} ${isMissing ? 'is required: it' : 'is not valid: it'} accepts ${message}`;
  });
  return ['The settings are not valid.', ...faults].join('\n');
}
