import { describe, expect, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings, type Settings, SettingsError } from '../../lib/settings/settings.ts';

const REQUIRED = {
  SVC_OAUTH_JWKS_URI: 'https://id.example.com/jwks',
  SVC_OAUTH_ISSUER: 'https://id.example.com',
  SVC_OAUTH_AUDIENCE: 'users',
};

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

const read = (variables: Variables = {}) => readSettings({ ...REQUIRED, ...variables });

/** The message of the refusal of these variables. */
function refusalOf(variables: Variables): string {
  try {
    readSettings(variables);
  } catch (error) {
    if (error instanceof SettingsError) return error.message;
    throw error;
  }
  return 'accepted';
}

/** Texts as files of variables leave them. */
const QUOTED = ['"text"', "'text'", '"text', "text'", 'two\nlines'];

const words = (text: string) => text.split(' ');
const at = (settings: Settings, path: string) =>
  path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], settings);
const serversOf = (...hosts: readonly string[]) => hosts.map((host) => ({ host, port: 5432 }));

/** Accepted values with their results, or words or numbers that are their own results. */
type Accepts = string | readonly number[] | Readonly<Record<string, unknown>>;

/** Each setting: its place in the result, accepted values, and refused values. */
const SETTINGS: Readonly<Record<string, readonly [string, Accepts, string | readonly string[]]>> = {
  SVC_ENV: ['environment', 'development production', 'Production prod test staging toString'],
  SVC_LOG_LEVEL: [
    'logLevel',
    { debug: 'debug', INFO: 'info', Warning: 'warning', eRRoR: 'error' },
    'warn trace fatal critical silent 10',
  ],
  SVC_OTEL_ENABLED: [
    'otel.enabled',
    { true: true, '1': true, YES: true, On: true, False: false, '0': false, no: false, OFF: false },
    'y t enabled 2 null',
  ],
  SVC_OAUTH_JWKS_URI: [
    'oauth.jwksUri',
    'http://127.0.0.1:8080/jwks https://id.example.com/a?b=c',
    [
      ...words('id.example.com/jwks /jwks ftp://id.example.com/jwks file:///etc/passwd http:// https//id'),
      ...['https://id.example.com/a b', '"https://id.example.com"'],
    ],
  ],
  SVC_OAUTH_ISSUER: ['oauth.issuer', { 'any text': 'any text', ' a\r': 'a' }, QUOTED],
  SVC_OAUTH_AUDIENCE: [
    'oauth.audience',
    { 'any text': ['any text'], '\tb"c\r\n': ['b"c'], ' a , https://b/c ': ['a', 'https://b/c'] },
    [...QUOTED, ',', 'a,', ',a', 'a, ,b', 'a,"b"'],
  ],
  SVC_OAUTH_ROLES_CLAIM: ['oauth.rolesClaim', 'scope aud realm_access.roles https://a/b', QUOTED],
  SVC_OAUTH_DELETE_ROLE: [
    'oauth.deleteRole',
    'users.write users.delete',
    [...words('users.read api.superuser USERS.DELETE any'), 'users.delete users.write'],
  ],
  SVC_OAUTH_ALGORITHMS: [
    'oauth.algorithms',
    { RS256: ['RS256'], 'ES256,EdDSA': ['ES256', 'EdDSA'], 'PS256, PS384': ['PS256', 'PS384'] },
    [...words('none HS256 RS256,none RS256,HS512 rs256 RS256,,ES256 , ES256K RSA-OAEP'), 'RS256 ES256'],
  ],
  SVC_OAUTH_CLOCK_TOLERANCE: [
    'oauth.clockTolerance',
    { '0': 0, '5': 5, '0.5': 0.5, '1e2': 100, '300': 300 },
    '-1 300.1 301 5s 1e3 1e 0x10 NaN Infinity 5,5',
  ],
  SVC_OAUTH_JWKS_REFRESH: ['oauth.jwksRefresh', [5, 3600, 60.5], '4 4.9 0 -5 3601 never NaN'],
  SVC_REQUEST_ID_HEADER: [
    'requestIdHeader',
    "X-Request-ID X-Correlation-ID Request-Id Traceparent-2 Hosts x-amzn-trace-id traceid - !#$%&'*+-.^_`|~9",
    [
      ...words('X-Request-ID: (x) a/b a"b käse a,b {a} a=b a@b Content-Length content-type ETag __proto__'),
      ...['X Request', 'X-Request-ID\r\nA: b'],
    ],
  ],
  SVC_POSTGRES_HOST: [
    'postgres.servers',
    {
      'db.example.com': serversOf('db.example.com'),
      '::1': serversOf('::1'),
      'a, b,c\r': serversOf('a', 'b', 'c'),
      '[::1], fe80::1%eth0': serversOf('::1', 'fe80::1%eth0'),
      'my_db.example.com., 10.0.0.1': serversOf('my_db.example.com.', '10.0.0.1'),
      '/var/run/postgresql': serversOf('/var/run/postgresql'),
    },
    [
      ...[...QUOTED, 'a b'],
      ...words('postgres://svc:hunter2@db/users svc:hunter2@db db:5432 [::1]:5432 [db] a;b a,b:5432 a,"b"'),
      ...words("a..b a/b '/var/run'"),
    ],
  ],
  SVC_POSTGRES_PORT: [
    'postgres.servers.0.port',
    [1, 65_535],
    '0 65536 -1 5432.0 1e3 0x1538 postgres 5432, 5432,5433',
  ],
  SVC_POSTGRES_ENGINE: ['postgres.engine', 'postgresql distributed', 'Distributed cockroachdb postgres'],
  SVC_POSTGRES_USER: ['postgres.user', { 'some one': 'some one', 'svc\r': 'svc' }, QUOTED],
  SVC_POSTGRES_PASSWORD: [
    'postgres.password',
    { ' p@ss:word/ ': ' p@ss:word/ ', '"quoted"\r': '"quoted"\r', ' ': ' ' },
    [],
  ],
  SVC_POSTGRES_DB: ['postgres.database', { 'users-db': 'users-db', ' users\r\n': 'users' }, QUOTED],
  SVC_POSTGRES_SSLMODE: [
    'postgres.sslMode',
    'disable require verify-full',
    'allow prefer verify-ca Require true',
  ],
  SVC_POSTGRES_POOL_SIZE: ['postgres.poolSize', [1, 200], '0 201 -1 1.5 ten'],
  SVC_POSTGRES_POOL_TIMEOUT: ['postgres.poolTimeout', { '0.25': 0.25, '1': 1, '5.0': 5 }, '-1 one NaN 1s'],
  SVC_POSTGRES_STATEMENT_TIMEOUT: [
    'postgres.statementTimeout',
    { '0.5': 0.5, '4.0': 4, '30': 30 },
    '-1 four NaN 4s',
  ],
  SVC_CHANGES_RETENTION: ['changesRetention', [1, 3650], '0 -1 3651 1.5 off'],
  SVC_POSTGRES_MIGRATE: ['postgres.migrate', { true: true, Off: false, '0': false, YES: true }, 'never 2 n'],
  SVC_HOST: [
    'host',
    { '127.0.0.1': '127.0.0.1', '::': '::', '[::1]': '::1', localhost: 'localhost' },
    [...QUOTED, 'not an address', 'localhost:8000', 'http://localhost'],
  ],
  SVC_PORT: ['port', [0, 8080, 65_535], '65536 -1 80.5 http 1e3'],
  SVC_KEEP_ALIVE_TIMEOUT: ['keepAliveTimeout', [1, 75, 3600], '0 3601 1.5 75s'],
  SVC_BODY_LIMIT: ['bodyLimit', [1024, 10_485_760], '1023 10485761 0 -1 64k 1e5 2048.5'],
  SVC_SHUTDOWN_DRAIN_TIMEOUT: [
    'shutdown.drainTimeout',
    { '30.0': 30, '0': 0, '-1': -1, '-0.5': -0.5, '0.25': 0.25, '1e1': 10, '-1e6': -1e6, '90000': 90_000 },
    'thirty inf NaN 30s 1,5 --1',
  ],
  SVC_SHUTDOWN_READINESS_DELAY: ['shutdown.readinessDelay', [0, 2.5, 30], '-1 soon NaN'],
  SVC_SHUTDOWN_SERVER_TIMEOUT: ['shutdown.serverTimeout', [0, 10, 2.5], '-1 soon NaN'],
};

function resultsOf(accepts: Accepts): (readonly [string, unknown])[] {
  const own = typeof accepts === 'string' ? words(accepts) : accepts;
  return Array.isArray(own) ? own.map((value) => [String(value), value]) : Object.entries(own);
}

test('every optional setting has its default', () => {
  expect(read()).toMatchObject({
    environment: 'development',
    logLevel: 'info',
    otel: { enabled: false },
    oauth: {
      jwksUri: 'https://id.example.com/jwks',
      issuer: 'https://id.example.com',
      audience: ['users'],
      rolesClaim: 'roles',
      algorithms: ALGORITHMS,
      clockTolerance: 0,
      jwksRefresh: 300,
    },
    requestIdHeader: 'X-Request-ID',
    changesRetention: 30,
    bodyLimit: 65_536,
    keepAliveTimeout: 75,
    host: '0.0.0.0',
    port: 8000,
    postgres: {
      servers: [{ host: 'localhost', port: 5432 }],
      user: 'postgres',
      password: '',
      database: 'postgres',
      sslMode: 'disable',
      poolSize: 10,
      poolTimeout: 1,
      statementTimeout: 4,
      migrate: true,
      engine: 'postgresql',
    },
    shutdown: { drainTimeout: 30, readinessDelay: 0, serverTimeout: undefined },
    unknown: [],
  });
});

test.each<readonly [string, boolean, Variables]>([
  ['without a receiver', true, {}],
  ['with a receiver', false, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' }],
  [
    'with a receiver of traces',
    false,
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://localhost:4318/v1/traces' },
  ],
  ['if OTEL_TRACES_EXPORTER is otlp', false, { OTEL_TRACES_EXPORTER: 'otlp' }],
  ['if OTEL_TRACES_EXPORTER is none', false, { OTEL_TRACES_EXPORTER: 'none' }],
])('%s spans are printed: %s', (_case, printsSpans, variables) => {
  expect(read({ SVC_OTEL_ENABLED: 'true', ...variables }).otel).toMatchObject({ printsSpans });
});

describe.each(Object.entries(SETTINGS))('%s', (name, [path, accepts, refuses]) => {
  test.each(resultsOf(accepts))('accepts %j', (given, value) => {
    expect(at(read({ [name]: given }), path)).toEqual(value);
  });

  if (refuses.length > 0) {
    test.each(typeof refuses === 'string' ? words(refuses) : refuses)('refuses %j', (given) => {
      const message = refusalOf({ ...REQUIRED, [name]: given });

      expect(message).toMatch(new RegExp(`${name} .*accepts .+`));
      expect(message.split('\n')).toHaveLength(2);
    });
  }

  test('is unset if it is empty', () => {
    for (const empty of name === 'SVC_POSTGRES_PASSWORD' ? [''] : ['', ' \t\r\n', undefined]) {
      if (name in REQUIRED)
        expect(refusalOf({ ...REQUIRED, [name]: empty })).toMatch(
          new RegExp(`^The settings are not valid\\.\n  ${name} .*required.*accepts .+$`),
        );
      else expect(read({ [name]: empty })).toEqual(read());
    }
  });
});

describe('SVC_POSTGRES_HOST and SVC_POSTGRES_PORT', () => {
  const servers = (hosts: string, ports: string) =>
    read({ SVC_POSTGRES_HOST: hosts, SVC_POSTGRES_PORT: ports }).postgres.servers;

  test('name as many hosts as given, with one port for all of them or one each', () => {
    expect(servers('a,b', '5433')).toEqual([
      { host: 'a', port: 5433 },
      { host: 'b', port: 5433 },
    ]);
    expect(servers('a,b,a', '1, 2, 3')).toEqual([
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
      { host: 'a', port: 3 },
    ]);
  });

  const NUMBER = '  SVC_POSTGRES_PORT is not valid: it accepts one port for all hosts, or one for each';
  const MISSING =
    '  SVC_POSTGRES_HOST is not valid: it accepts a host name, an IP address or the path of a socket, or several separated by commas';

  test.each([
    ['a', '1,2', NUMBER],
    ['a,b', '1,2,3', NUMBER],
    ['a,b,c', '1,2', NUMBER],
    [',', '1,2,3', MISSING],
    ['a,', '1,2,3', MISSING],
    ['a,,b', '1,2,3', MISSING],
  ])('are refused if %j has the ports %j, beside every other fault', (hosts, ports, fault) => {
    const variables = { SVC_POSTGRES_HOST: hosts, SVC_POSTGRES_PORT: ports, SVC_LOG_LEVEL: 'loud' };

    expect(refusalOf({ ...REQUIRED, ...variables }).split('\n')).toEqual([
      'The settings are not valid.',
      '  SVC_LOG_LEVEL is not valid: it accepts `debug`, `info`, `warning`, `error`, any case',
      fault,
    ]);
  });
});

describe('the refusal', () => {
  const wrong = Object.keys(SETTINGS).filter((name) => name !== 'SVC_POSTGRES_PASSWORD');
  const secret = 'hunter2-hunter2';

  test('names exactly the invalid settings, with their accepted values', () => {
    const message = refusalOf({
      ...Object.fromEntries(wrong.map((name) => [name, `"${secret}:`])),
      SVC_OAUTH_ISSUER: undefined,
      SVC_OAUTH_AUDIENCE: '',
    });

    const named = [...message.matchAll(/^ *(SVC_\w+) .*accepts .+$/gm)].map(([, name]) => name);
    expect(named.sort()).toEqual(wrong.toSorted());
  });

  test.each([
    ['SVC_LOG_LEVEL', ['debug', 'info', 'warning', 'error']],
    ['SVC_OAUTH_ALGORITHMS', ALGORITHMS],
    ['SVC_POSTGRES_SSLMODE', ['disable', 'require', 'verify-full']],
    ['SVC_OTEL_ENABLED', ['true', 'false', 'yes', 'no', 'on', 'off']],
    ['SVC_BODY_LIMIT', ['1024', '10485760']],
    ['SVC_POSTGRES_POOL_SIZE', ['1', '200']],
    ['SVC_OAUTH_JWKS_REFRESH', ['5', '3600']],
    ['SVC_OAUTH_CLOCK_TOLERANCE', ['0', '300']],
    ['SVC_CHANGES_RETENTION', ['1', '3650', 'changes can no longer be turned off']],
  ])('describes the accepted values of %s', (name, words) => {
    const message = refusalOf({ ...REQUIRED, [name]: ':' });

    for (const word of words) expect(message).toContain(word);
  });
});

const PUSHES = {
  SVC_OTEL_ENABLED: 'true',
  OTEL_TRACES_EXPORTER: 'otlp',
  OTEL_METRICS_EXPORTER: 'otlp',
};
const SIGNALS = ['', 'TRACES_', 'METRICS_'];
const LONGEST = String(2 ** 31 - 1);
const TIMES = { accepted: ['1', '60000', LONGEST, ' 5 '], refused: ['0', '-1', '2147483648', '1e9', 'x'] };

test.each<readonly [string, readonly string[], readonly string[]]>([
  ['OTEL_TRACES_EXPORTER', ['otlp', 'console', 'none'], ['zipkin', 'otlp,console', 'OTLP']],
  ['OTEL_METRICS_EXPORTER', ['otlp', 'prometheus', 'none'], ['console', 'statsd']],
  ...SIGNALS.flatMap((signal) => [
    [
      `OTEL_EXPORTER_OTLP_${signal}PROTOCOL`,
      ['http/protobuf', 'http/json', ' http/json\r'],
      ['grpc'],
    ] as const,
    [
      `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`,
      ['http://collector:4318', ' http://collector:4318 '],
      [
        ...['http://collector: 4318', 'http://a/b c', 'collector:4318', '"http://a"', 'http://svc:hunter2@a'],
        'http://a:99999',
      ],
    ] as const,
    [`OTEL_EXPORTER_OTLP_${signal}TIMEOUT`, TIMES.accepted, TIMES.refused] as const,
    [
      `OTEL_EXPORTER_OTLP_${signal}HEADERS`,
      ['a=b', 'a=b%20c, d = e'],
      ['a', 'a b=c', 'a=b,', 'a=%0A', 'a=%'],
    ] as const,
  ]),
  ['OTEL_METRIC_EXPORT_INTERVAL', TIMES.accepted, TIMES.refused],
  ['OTEL_METRIC_EXPORT_TIMEOUT', TIMES.accepted, TIMES.refused],
  ['OTEL_BSP_SCHEDULE_DELAY', TIMES.accepted, TIMES.refused],
  ['OTEL_BSP_EXPORT_TIMEOUT', TIMES.accepted, TIMES.refused],
  ['OTEL_BSP_MAX_QUEUE_SIZE', ['1', '4096'], ['0', '-1', 'x']],
  ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE', ['1', '512'], ['0', '-1', 'x']],
  ['OTEL_EXPORTER_PROMETHEUS_PORT', ['9464'], ['99999', '0', 'x']],
  ['OTEL_EXPORTER_PROMETHEUS_HOST', ['::', 'a'], ['a:1', '"a"']],
  [
    'SVC_POSTGRES_PASSWORD_FROM',
    ['/run/secrets/password', 'http://localhost:2773/x', ' /run/x\r'],
    ['file:///run/x', 'ftp://x', 'http://svc:hunter2@localhost/x', 'postgres://a', '"/run/x"'],
  ],
])('%s accepts %j, but not %j, unless OpenTelemetry does not use it', (name, accepted, refused) => {
  const used = name.includes('PROMETHEUS') ? { OTEL_METRICS_EXPORTER: 'prometheus' } : {};
  for (const value of accepted) expect(read({ ...PUSHES, ...used, [name]: value }).unknown).toEqual([]);
  for (const value of refused) {
    expect(refusalOf({ ...REQUIRED, ...PUSHES, ...used, [name]: value })).toContain(name);
    if (!name.startsWith('OTEL_')) continue;
    expect(read({ ...PUSHES, ...used, [name]: value, SVC_OTEL_ENABLED: 'false' }).unknown).toEqual([]);
    expect(read({ ...PUSHES, ...used, [name]: value, OTEL_SDK_DISABLED: 'TRUE' }).unknown).toEqual([]);
  }
});

test.each<readonly [string, boolean, Variables]>([
  ['no signal is pushed', true, { OTEL_TRACES_EXPORTER: 'none' }],
  ['spans are printed', true, {}],
  [
    'each signal has its own',
    true,
    {
      ...PUSHES,
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json',
    },
  ],
  ['only metrics have their own', false, { ...PUSHES, OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json' }],
  ['metrics use it', false, { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'otlp' }],
  ['spans use it', false, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a' }],
])('OTEL_EXPORTER_OTLP_PROTOCOL=grpc of a fleet is accepted if %s: %s', (_case, isAccepted, variables) => {
  const given = { ...REQUIRED, SVC_ENV: 'production', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', ...variables };

  expect(refusalOf(given) === 'accepted').toBe(isAccepted);
});

test('an unknown SVC_ name is reported unless it is empty, and does not prevent the start', () => {
  const known = { SVC_TYPO: '', svc_env: 'production', PATH: '/bin', NODE_ENV: 'x', MY_SVC_ENV: 'x' };
  const variables = { SVC_LOGLEVEL: 'debug', SVC_: 'x', SVC_POSTGRES_PASSWROD: 'x', ...known };

  expect(read(variables).unknown.toSorted()).toEqual(['SVC_', 'SVC_LOGLEVEL', 'SVC_POSTGRES_PASSWROD']);
});

/** Headers that already have a meaning. */
const HEADERS = {
  'of RFC 9110':
    '* Accept Accept-Charset Accept-Encoding Accept-Language Accept-Ranges Allow Authentication-Info ' +
    'Authorization Connection Content-Encoding Content-Language Content-Length Content-Location ' +
    'Content-Range Content-Type Date ETag Expect From Host If-Match If-Modified-Since If-None-Match ' +
    'If-Range If-Unmodified-Since Keep-Alive Last-Modified Location Max-Forwards Proxy-Authenticate ' +
    'Proxy-Authentication-Info Proxy-Authorization Proxy-Connection Range Referer Retry-After Server TE ' +
    'Trailer Upgrade User-Agent Vary Via WWW-Authenticate',
  'of RFC 9111': 'Age Cache-Control Expires Pragma Warning',
  'of RFC 9112': 'Close MIME-Version Transfer-Encoding',
  'of cookies': 'Cookie Cookie2 Set-Cookie Set-Cookie2',
  'of Trace Context': 'traceparent tracestate',
  'of this API':
    'Accept-Patch Content-Security-Policy Idempotency-Key Idempotency-Replayed Link Referrer-Policy ' +
    'X-Content-Type-Options X-Forwarded-Proto',
};

test.each(Object.entries(HEADERS))(
  'SVC_REQUEST_ID_HEADER must not be a header %s, in any case',
  (_list, names) => {
    const refused = words(names)
      .flatMap((name) => [name, name.toLowerCase(), name.toUpperCase()])
      .map((name) => refusalOf({ ...REQUIRED, SVC_REQUEST_ID_HEADER: name }));

    expect(new Set(refused)).toEqual(
      new Set([
        'The settings are not valid.\n  SVC_REQUEST_ID_HEADER is not valid: it accepts a header name that HTTP, ' +
          'cookies, Trace Context and this API do not use',
      ]),
    );
  },
);
