import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SETTINGS } from '../../lib/settings/setting-table.ts';
import { builtHost } from '../stage/build.ts';
import { type BuiltService, startBuiltHost, startBuiltService } from '../stage/built-service.ts';
import { lastResponse, written } from '../stage/connection.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { listen } from '../stage/listening.ts';
import { USERS } from '../stage/responses.ts';
import { until } from '../stage/until.ts';

/** Secrets that are in one place or several, and must not be in the output. */
const PLANTED = {
  address: 'planted.address@secret.example',
  secondAddress: 'second.address@secret.example',
  name: 'Planted Fullname',
  database: 'planted-database-password',
  provider: 'planted-provider-password',
  collector: 'planted-collector-key',
  basic: 'cGxhbnRlZDpwYXNzd29yZA==',
  body: 'planted-body-text',
  query: 'planted-query-text',
  opaque: 'planted.opaque.token',
} as const;

/** A run with every kind of failure, and with secrets in all places that callers and operators control. */
async function run(service: BuiltService): Promise<readonly string[]> {
  const { call, issuer, url, database } = service;
  const tokens = await Promise.all([
    issuer.sign(),
    issuer.sign({ sub: 'svc-reader', roles: ['users.read'] }),
    issuer.sign({ exp: 1 }),
    issuer.sign({ aud: 'other' }),
    issuer.sign({}, { kid: 'unknown' }),
  ]);
  const [valid = '', ...refused] = tokens;
  const withToken = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const user = { email: PLANTED.address, full_name: PLANTED.name };

  // Requests that succeed.
  const created = await call('POST', USERS, user, withToken(valid));
  const { id } = created.body as { id: string };
  await call('PATCH', USERS + id, { email: PLANTED.secondAddress, full_name: PLANTED.name });
  await call('PATCH', USERS + id, { email: PLANTED.address });

  // Requests that each rule with access to a secret refuses.
  for (const token of refused) await call('POST', USERS, user, withToken(token));
  await call('GET', USERS, undefined, withToken(PLANTED.opaque));
  await call('GET', USERS, undefined, { headers: { authorization: `Basic ${PLANTED.basic}` } });
  await call('POST', USERS, user);
  await call('POST', USERS, { ...user, email: [PLANTED.body] });
  await call('POST', USERS, undefined, {
    body: `{"email": "${PLANTED.body}`,
    headers: { 'content-type': 'application/json' },
  });
  await call('POST', USERS, undefined, { body: PLANTED.body });
  await call('POST', USERS, { full_name: PLANTED.body.repeat(10_000) });
  await call('GET', `${USERS}?limit=${PLANTED.query}&access_token=${valid}&email=${PLANTED.address}`);
  await call('GET', USERS + PLANTED.address);
  await call('GET', USERS + encodeURIComponent(PLANTED.secondAddress));
  await call('GET', `${USERS}${PLANTED.address}/`);
  await call('GET', `/nowhere/${encodeURIComponent(PLANTED.address)}/orders`);

  await call('GET', `${USERS}access_token=${valid}`);
  await call('GET', `${USERS}(${valid})`);
  await call('GET', USERS + valid.replaceAll('.', '%2E'));
  await call('GET', USERS + encodeURIComponent(encodeURIComponent(PLANTED.address)));
  await call('GET', USERS + encodeURIComponent(PLANTED.address.replace('@', '\uff20')));

  // Headers in which callers identify themselves.
  for (const agent of [`billing/1.0 (+mailto:${PLANTED.address})`, `billing/1.0 ${valid}`]) {
    await call('GET', '/nowhere', undefined, {
      headers: { 'user-agent': agent, baggage: `user=${PLANTED.query}`, from: PLANTED.address },
    });
  }

  // Bytes that are not HTTP.
  for (const content of [
    `GET /health HTTP/1.1\r\nHost: a\r\nAuthorization Bearer ${valid}\r\n\r\n`,
    `${PLANTED.body} ${valid}\r\n\r\n`,
    written(`GET /?${PLANTED.query}&token=${valid}`, [['Connection', 'close']]),
    written(`GET /${PLANTED.address}`, [['X-Large', valid.repeat(50)]]),
    written('GET /nowhere', [
      ['Host', valid],
      ['Connection', 'close'],
    ]),
  ])
    await lastResponse(url, content);
  await database.query(`
    ALTER TABLE users ADD CONSTRAINT no_secret CHECK (full_name IS NOT NULL) NOT VALID;
    CREATE FUNCTION as_number() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.full_name := NEW.full_name::integer; RETURN NEW; END $$;
    CREATE TRIGGER as_number BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION as_number()
  `);
  // PostgreSQL quotes refused values, and reports the whole row that violates the constraint.
  await call('PATCH', USERS + id, { full_name: PLANTED.name });
  await call('POST', USERS, { email: PLANTED.secondAddress, full_name: PLANTED.name });
  await call('POST', USERS, { email: PLANTED.secondAddress });
  await database.drop();
  await call('POST', USERS, user, withToken(valid));
  await call('GET', `${USERS}${id}?email=${PLANTED.address}`);
  return tokens;
}

test.each(['production', 'development'])(
  'secrets in all inputs are in no output of a whole run in %s',
  async (environment) => {
    const service = await forThisTest(startBuiltService, {
      SVC_ENV: environment,
      SVC_LOG_LEVEL: 'debug',
      SVC_OTEL_ENABLED: 'true',
      SVC_POSTGRES_PASSWORD: PLANTED.database,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=${PLANTED.collector}`,
    });
    const tokens = await run(service);
    await until('the last event', () => service.printed().includes('does not exist'));
    service.signal('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    const output = service.printed() + service.errors();

    // The output contains events, causes, spans and the statement of a span.
    const logged = ['user_created', 'user_updated', 'p***@secret.example', '23514', '22P02', 'insert into'];
    for (const part of logged) expect(linesWith(part, output)).not.toEqual([]);
    const parts = tokens.flatMap((token) => token.split('.').slice(1));
    const [mailbox = ''] = PLANTED.address.split('@');
    for (const secret of [...Object.values(PLANTED), `${mailbox}%`, 'eyJ', ...parts])
      expect(linesWith(secret, output)).toEqual([]);
  },
);

function linesWith(secret: string, output: string): readonly string[] {
  return output.split('\n').filter((line) => line.includes(secret));
}

test('credentials in the URL of the keys are in no output', async () => {
  const service = await forThisTest(startBuiltService);
  const address = new URL(service.issuer.jwksUri);
  address.username = 'svc';
  address.password = PLANTED.provider;
  const host = await forThisTest(startBuiltHost, {
    ...service.environment,
    SVC_OAUTH_JWKS_URI: address.href,
  });
  // If it refuses to start with them, cannot use them or uses them.
  await until(
    'the keys',
    () => !host.isAlive() || host.printed().includes('jwks_refresh_failed') || service.issuer.fetches > 1,
  );
  const output = host.printed() + host.errors();

  expect(output).not.toBe('');
  expect(linesWith(PLANTED.provider, output)).toEqual([]);
});

const MARKED = 'marked-hunter2-secret';

/** Forms that hold the secret, of which nearly every setting refuses some. */
const FORMS = [MARKED, `postgres://svc:${MARKED}@db/users`, `a:${MARKED}`, `${MARKED}\nb`];

test.each(FORMS)('a value of a setting that is refused is in no output: %j', async (value) => {
  const everywhere = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, value]));
  const used = { SVC_OTEL_ENABLED: 'true', OTEL_TRACES_EXPORTER: 'otlp', OTEL_METRICS_EXPORTER: 'otlp' };
  for (const variables of [everywhere, { ...everywhere, ...used }]) {
    const host = await forThisTest(startBuiltHost, variables);

    expect(await host.exited).toEqual({ code: 1, signal: null });
    expect(host.errors()).toContain('SVC_PORT is not valid');
    expect(host.printed() + host.errors()).not.toContain(MARKED);
  }
});

test('diagnostics of OpenTelemetry quote no value of its variables', async () => {
  const service = await forThisTest(startBuiltService, {
    SVC_OTEL_ENABLED: 'true',
    SVC_LOG_LEVEL: 'debug',
    OTEL_LOG_LEVEL: 'all',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${MARKED}`,
    OTEL_RESOURCE_ATTRIBUTES: `a b=${MARKED},${MARKED}`,
    OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: MARKED,
  });
  await service.untilEvent('otel_diagnostic');
  await service.createUser();
  service.signal('SIGTERM');
  await service.exited;

  expect(linesWith(MARKED, service.printed() + service.errors())).toEqual([]);
});

/** What a source answers that holds no password. */
const ANSWERS: readonly (readonly [status: number, type: string, body: string | Buffer])[] = [
  [200, 'application/json', `{"SecretText": "${MARKED}"}`],
  [200, 'application/json', `{"SecretString": "{\\"username\\": \\"${MARKED}\\"}"}`],
  [200, 'application/json', `{"password": "${MARKED}`],
  [200, 'text/plain', `${MARKED}\nand\nmore`],
  [200, 'application/octet-stream', Buffer.from([0xff, 0x00, ...Buffer.from(MARKED)])],
  [302, 'text/plain', MARKED],
  [500, 'text/plain', MARKED],
];

/** A PostgreSQL that asks for the password in clear text, and refuses it. */
async function startAskingPostgres() {
  const received: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])));
    socket.on('data', (bytes) => {
      if (bytes[0] !== 0x70) return;
      received.push(bytes.subarray(5, -1).toString());
      socket.destroy();
    });
  });
  onTestFinished(() => void server.close());
  return { ...(await listen(server)), received };
}

const runMigrate = async (variables: NodeJS.ProcessEnv) => {
  const command = (await builtHost()).replace('main.mjs', 'migrate.mjs');
  return new Promise<string>((resolve) =>
    execFile(process.execPath, [command], { env: variables }, (_fault, out, errors) => resolve(out + errors)),
  );
};

const REQUIRED = {
  SVC_ENV: 'production',
  SVC_LOG_LEVEL: 'debug',
  SVC_OTEL_ENABLED: 'true',
  SVC_PORT: '0',
  SVC_HOST: '127.0.0.1',
  SVC_OAUTH_JWKS_URI: 'http://127.0.0.1:9/jwks',
  SVC_OAUTH_ISSUER: 'issuer',
  SVC_OAUTH_AUDIENCE: 'users',
  SVC_POSTGRES_HOST: '127.0.0.1',
};

test('what the source of the password returns is in no output, and is never another password', async () => {
  const postgres = await startAskingPostgres();
  let asked = 0;
  const source = createHttpServer((_request, response) => {
    const [status, type, body] = ANSWERS[asked % ANSWERS.length] as (typeof ANSWERS)[number];
    asked += 1;
    response.writeHead(status, { 'content-type': type, location: `/${MARKED}` }).end(body);
  });
  onTestFinished(() => void source.close());
  const { url: origin } = await listen(source);
  const variables = {
    ...REQUIRED,
    SVC_POSTGRES_PORT: String(postgres.port),
    SVC_POSTGRES_PASSWORD_FROM: `${origin}/?key=${MARKED}`,
  };
  const host = await forThisTest(startBuiltHost, variables);
  const url = await host.untilListening();
  const responses: string[] = [];
  await until('each answer twice', async () => {
    responses.push(await (await fetch(`${url}/ready`)).text());
    return asked > 2 * ANSWERS.length + 2;
  });
  const migrated = await runMigrate(variables);
  const { cause } = (await host.untilEvent('postgres_unavailable')) as { cause?: { message: string } };

  expect(cause?.message).toMatch(/^the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: /);
  expect(migrated).toMatch(/^the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: .*\n$/);
  expect(linesWith(MARKED, host.printed() + host.errors() + migrated + responses.join('\n'))).toEqual([]);
  expect(postgres.received).toEqual([]);
});

test.each([
  ['a password in place of a file', () => MARKED],
  // Not the port 9, which `fetch` refuses by itself.
  ['a source that does not listen', () => `http://127.0.0.1:2/${MARKED}`],
  ['a file of several lines', () => fileWith(`${MARKED}\n${MARKED}\n`)],
  ['a file of JSON', () => fileWith(`{"user": "${MARKED}"}`)],
])('the name of a source of the password is in no output: %s', async (_case, source) => {
  const { port, received } = await startAskingPostgres();
  const from = { SVC_POSTGRES_PORT: String(port), SVC_POSTGRES_PASSWORD_FROM: source() };
  const host = await forThisTest(startBuiltHost, { ...REQUIRED, ...from });
  await host.untilEvent('migration_failed');
  await fetch(`${await host.untilListening()}/ready`);
  await host.untilEvent('app_error');

  expect(
    linesWith(MARKED, host.printed() + host.errors() + (await runMigrate({ ...REQUIRED, ...from }))),
  ).toEqual([]);
  expect(received).toEqual([]);
});

function fileWith(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), `user-management-source-`));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'password'), content);
  return join(folder, 'password');
}
