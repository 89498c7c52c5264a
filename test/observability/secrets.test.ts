import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startBuiltHost } from '../stage/built-host.ts';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { connectTo, written } from '../stage/connection.ts';
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
  const { id } = (await created.json()) as { id: string };
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
    written(`GET /?${PLANTED.query}&token=${valid}`),
    written(`GET /${PLANTED.address}`, [['X-Large', valid.repeat(50)]]),
  ]) {
    const connection = await connectTo(url);
    connection.send(content);
    await connection.answer();
    connection.close();
  }

  await withFaultyTables(database, async () => {
    // PostgreSQL quotes refused values, and reports the whole row that violates the constraint.
    await call('PATCH', USERS + id, { full_name: PLANTED.name });
    await call('POST', USERS, { email: PLANTED.secondAddress, full_name: PLANTED.name });
    await call('POST', USERS, { email: PLANTED.secondAddress });
  });
  await database.drop();
  await call('POST', USERS, user, withToken(valid));
  await call('GET', `${USERS}${id}?email=${PLANTED.address}`);
  return tokens;
}

async function withFaultyTables(database: BuiltService['database'], act: () => Promise<void>) {
  const client = new pg.Client({ ...database, ssl: false });
  client.on('error', () => {});
  await client.connect();
  await client.query(`
    ALTER TABLE users ADD CONSTRAINT no_secret CHECK (full_name IS NOT NULL) NOT VALID;
    CREATE FUNCTION as_number() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.full_name := NEW.full_name::integer; RETURN NEW; END $$;
    CREATE TRIGGER as_number BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION as_number()`);
  await act();
  await client.end();
}

test.each(['production', 'development'])(
  'secrets in all inputs are in no output of a whole run in %s',
  async (environment) => {
    const service = await startBuiltService({
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
    await service.remove();

    // The output contains events, causes, spans and the statement of a span.
    for (const part of [
      'user_created',
      'user_updated',
      'p***@secret.example',
      '23514',
      '22P02',
      'insert into',
    ]) {
      expect(output).toContain(part);
    }
    const parts = tokens.flatMap((token) => token.split('.').slice(1));
    const [mailbox = ''] = PLANTED.address.split('@');
    for (const secret of [...Object.values(PLANTED), `${mailbox}%`, 'eyJ', ...parts]) {
      expect(linesWith(secret, output)).toEqual([]);
    }
  },
);

function linesWith(secret: string, output: string): readonly string[] {
  return output.split('\n').filter((line) => line.includes(secret));
}

test('credentials in the URL of the keys are in no output', async () => {
  const service = await startBuiltService();
  onTestFinished(service.remove);
  const address = new URL(service.issuer.jwksUri);
  address.username = 'svc';
  address.password = PLANTED.provider;
  const host = await startBuiltHost({ ...service.environment, SVC_OAUTH_JWKS_URI: address.href });
  onTestFinished(host.remove);
  // If it refuses to start with them, cannot use them or uses them.
  await until(
    'the keys',
    () => !host.isAlive() || host.printed().includes('jwks_refresh_failed') || service.issuer.fetches > 1,
  );
  const output = host.printed() + host.errors();

  expect(output).not.toBe('');
  expect(linesWith(PLANTED.provider, output)).toEqual([]);
});
