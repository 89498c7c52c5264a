import * as z from 'zod';
import {
  ALGORITHMS,
  algorithms,
  anyCase,
  choice,
  fieldName,
  flag,
  httpUrl,
  seconds,
  text,
  whole,
} from './setting-forms.ts';

/** Every setting: its name, what it accepts, its default. The README's table is made from it. */
export const Environment = z.object({
  SVC_ENV: choice('development', 'production').default('development'),
  SVC_LOG_LEVEL: anyCase('debug', 'info', 'warning', 'error').default('info'),
  SVC_OTEL_ENABLED: flag().optional().describe('true in production, false in development'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl().optional().describe('unset: spans go to standard output'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl().optional().describe('the same, for spans alone'),
  POWERTOOLS_TRACE_ENABLED: flag()
    .default(false)
    .describe('AWS Lambda alone: AWS X-Ray, when OpenTelemetry is off'),
  OTEL_METRICS_EXPORTER: text('`otlp`, `prometheus`, `console`, `none`').default('none'),

  SVC_OAUTH_JWKS_URI: httpUrl(),
  SVC_OAUTH_ISSUER: text(),
  SVC_OAUTH_AUDIENCE: text(),
  SVC_OAUTH_ROLES_CLAIM: text('a claim name').default('roles'),
  SVC_OAUTH_ALGORITHMS: algorithms().default([...ALGORITHMS]),
  SVC_OAUTH_CLOCK_TOLERANCE: seconds(0, 300).default(0),
  SVC_OAUTH_JWKS_REFRESH: seconds(5, 3600).default(300),

  SVC_REQUEST_ID_HEADER: fieldName().default('X-Request-ID'),
  SVC_BODY_LIMIT: whole(1024, 10_485_760, 'bytes').default(65_536),
  SVC_HOST: text('an address to listen on').default('0.0.0.0'),
  SVC_PORT: whole(0, 65_535).default(8000),

  SVC_POSTGRES_HOST: text('a host name or address').default('localhost'),
  SVC_POSTGRES_PORT: whole(1, 65_535).default(5432),
  SVC_POSTGRES_USER: text().default('postgres'),
  SVC_POSTGRES_PASSWORD: text().default(''),
  SVC_POSTGRES_DB: text().default('postgres'),
  SVC_POSTGRES_SSLMODE: choice('disable', 'require', 'verify-full').default('disable'),
  SVC_POSTGRES_POOL_SIZE: whole(1, 200).default(10),
  SVC_POSTGRES_POOL_TIMEOUT: seconds(0.01, 60).default(1),
  SVC_POSTGRES_STATEMENT_TIMEOUT: seconds(0.01, 600).default(4),
  SVC_POSTGRES_MIGRATE: flag().default(true),
  SVC_POSTGRES_POOLER: choice('none', 'transaction').default('none'),

  SVC_SHUTDOWN_DRAIN_TIMEOUT: seconds(-86_400, 86_400).default(30),
  SVC_SHUTDOWN_READINESS_DELAY: seconds(0, 3600).default(0),
  SVC_SHUTDOWN_SERVER_TIMEOUT: seconds(0, 86_400).optional(),
});

/** The settings of one instance. Times are in seconds, sizes in bytes. */
export type Settings = ReturnType<typeof readSettings>;

/** Settings that are missing or wrong. The message names each of them, what it accepts, and no value. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Environment variables. */
export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads all settings at once. An empty value counts as unset; `defaults` are those of a particular host.
 *
 * @throws {SettingsError} naming every offending setting
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
      exportsSpans: Boolean(data.OTEL_EXPORTER_OTLP_ENDPOINT ?? data.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT),
      exportsMetrics: data.OTEL_METRICS_EXPORTER !== 'none',
    },
    oauth: {
      jwksUri: data.SVC_OAUTH_JWKS_URI,
      issuer: data.SVC_OAUTH_ISSUER,
      audience: data.SVC_OAUTH_AUDIENCE,
      rolesClaim: data.SVC_OAUTH_ROLES_CLAIM,
      algorithms: data.SVC_OAUTH_ALGORITHMS,
      clockTolerance: data.SVC_OAUTH_CLOCK_TOLERANCE,
      jwksRefresh: data.SVC_OAUTH_JWKS_REFRESH,
    },
    xray: data.POWERTOOLS_TRACE_ENABLED,
    requestIdHeader: data.SVC_REQUEST_ID_HEADER,
    bodyLimit: data.SVC_BODY_LIMIT,
    host: data.SVC_HOST,
    port: data.SVC_PORT,
    postgres: {
      host: data.SVC_POSTGRES_HOST,
      port: data.SVC_POSTGRES_PORT,
      user: data.SVC_POSTGRES_USER,
      password: data.SVC_POSTGRES_PASSWORD,
      database: data.SVC_POSTGRES_DB,
      sslMode: data.SVC_POSTGRES_SSLMODE,
      poolSize: data.SVC_POSTGRES_POOL_SIZE,
      poolTimeout: data.SVC_POSTGRES_POOL_TIMEOUT,
      statementTimeout: data.SVC_POSTGRES_STATEMENT_TIMEOUT,
      migrate: data.SVC_POSTGRES_MIGRATE,
      pooler: data.SVC_POSTGRES_POOLER,
    },
    shutdown: {
      drainTimeout: data.SVC_SHUTDOWN_DRAIN_TIMEOUT,
      readinessDelay: data.SVC_SHUTDOWN_READINESS_DELAY,
      serverTimeout: data.SVC_SHUTDOWN_SERVER_TIMEOUT,
    },
    /** `SVC_*` names that no setting has: a typo should not be silent. */
    unknown: Object.keys(given).filter((name) => name.startsWith('SVC_') && !(name in Environment.shape)),
  } as const;
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
