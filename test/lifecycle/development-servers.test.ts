import { spawn } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { afterAll, describe, expect, test } from 'vitest';
import { type Postgres, startPostgres } from '../../host/development/postgres.ts';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { hastySettings } from '../stage/postgres.ts';
import { isProcessAlive } from '../stage/process.ts';
import { inDatabase } from '../stage/rows.ts';

const audience = 'user-management-service';
const folder = forAllTests(async () => mkdtempDisposableSync(join(tmpdir(), 'user-management-test-')));

describe('the development token issuer', () => {
  const issuer = forAllTests(() => startTokenIssuer({ audience, port: 0 }));

  async function askForToken(form: Record<string, string>, headers: Record<string, string> = {}) {
    const body = new URLSearchParams(form);
    const response = await fetch(issuer.tokenEndpoint, { method: 'POST', body, headers });
    const reply = (await response.json()) as { access_token: string; scope?: string };
    return { status: response.status, headers: response.headers, body: reply };
  }

  async function verify(token: string) {
    const keys = createRemoteJWKSet(new URL(issuer.jwksUri));
    return jwtVerify(token, keys, { issuer: issuer.issuer, audience, algorithms: ['RS256'] });
  }

  const grant = { grant_type: 'client_credentials' };

  test('issues a client an RS256 token with its audience and its roles', async () => {
    const { status, headers, body } = await askForToken({
      ...grant,
      client_id: 'billing',
      client_secret: 'x',
    });

    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'users.read users.write',
    });
    const { payload, protectedHeader } = await verify(body.access_token);
    expect(protectedHeader.alg).toBe('RS256');
    expect(payload).toMatchObject({ sub: 'billing', aud: [audience, 'users.read', 'users.write'] });
    expect(payload.exp).toBe((payload.iat ?? 0) + 3600);
  });

  test('accepts the client id by HTTP Basic, decoded as RFC 6749 requires', async () => {
    const credentials = Buffer.from('billing%3Aeu:secret').toString('base64');
    const { status, body } = await askForToken(grant, { Authorization: `Basic ${credentials}` });

    expect(status).toBe(200);
    expect(decodeJwt(body.access_token).sub).toBe('billing:eu');
  });

  test('issues the roles that the scope names', async () => {
    const { body } = await askForToken({ ...grant, client_id: 'billing', scope: 'api.superuser users.read' });

    expect(decodeJwt(body.access_token).aud).toEqual([audience, 'api.superuser', 'users.read']);
    expect(body.scope).toBe('api.superuser users.read');
  });

  test.each([
    ['a missing client id', grant, 'invalid_client'],
    ['an unknown scope', { ...grant, client_id: 'billing', scope: 'users.raed' }, 'invalid_scope'],
  ])('refuses %s', async (_case, form, error) => {
    const { status, body } = await askForToken(form);

    expect(status).toBe(400);
    expect(body).toEqual({ error, error_description: expect.stringContaining('users.read') });
  });

  test('lets a page of another origin, such as Swagger UI, request a token with HTTP Basic', async () => {
    const preflight = await fetch(issuer.tokenEndpoint, { method: 'OPTIONS' });

    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization');
  });

  test('publishes no private part of its key', async () => {
    const { keys } = (await (await fetch(issuer.jwksUri)).json()) as { keys: object[] };

    expect(keys.map((key) => Object.keys(key).sort())).toEqual([['alg', 'e', 'kid', 'kty', 'n', 'use']]);
  });

  test('stores its key in a private file, so that tokens stay valid after a restart', async () => {
    const keyFile = join(folder.path, 'keys', 'issuer.json');
    const first = await startTokenIssuer({ audience, port: 0, keyFile });
    const token = await first.issueToken({ clientId: 'billing', roles: ['users.read'], expiresIn: 60 });
    await first.stop();
    const second = await startTokenIssuer({ audience, port: 0, keyFile });
    const verified = await jwtVerify(token, createRemoteJWKSet(new URL(second.jwksUri)));
    await second.stop();

    expect(verified.payload.aud).toEqual([audience, 'users.read']);
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
  });
});

describe('the embedded PostgreSQL', () => {
  const postgresModule = new URL('../../host/development/postgres.ts', import.meta.url).href;
  const dataFolder = () => join(folder.path, 'postgres');

  const start = (options: Partial<Parameters<typeof startPostgres>[0]> = {}) =>
    startPostgres({ dataFolder: dataFolder(), settings: hastySettings, ...options });

  afterAll(async () => {
    // If PostgreSQL's account cannot access the folder, a link in its place leads to the data.
    await rm(await realpath(dataFolder()), { recursive: true, force: true });
  });

  test('listens on 127.0.0.1, leaves no process behind, and keeps its data for the next start', async () => {
    const first = await start();
    const [version] = await inDatabase(first, 'SHOW server_version_num');
    await inDatabase(first, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.stop();
    expect(isProcessAlive(first.processId)).toBe(false);

    const second = await start({ port: first.port });
    const kept = await inDatabase(second, 'SELECT answer FROM kept');
    await second.stop();

    expect(version?.server_version_num).toMatch(/^18/);
    expect(first).toMatchObject({ host: '127.0.0.1', user: 'postgres', database: 'postgres' });
    expect(second.port).toBe(first.port);
    expect(kept).toEqual([{ answer: 42 }]);
  });

  test('refuses a second start while the first one runs', async () => {
    const first = await start();
    const second = start();

    await expect(second).rejects.toThrow(`Is another postmaster (PID ${first.processId}) running`);
    await first.stop();
  });

  test('ends when its launcher is killed, and starts again from the files that remain', async () => {
    const options = JSON.stringify({ dataFolder: dataFolder(), settings: hastySettings });
    const script = `
      const { startPostgres } = await import(${JSON.stringify(postgresModule)});
      console.log(JSON.stringify(await startPostgres(${options})));
      setInterval(() => {}, 1000);
    `;
    const launcher = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await launcher.stdout.take(1).toArray();
    const server: Postgres = JSON.parse(String(line));
    await inDatabase(server, 'SELECT 1');

    launcher.kill('SIGKILL');
    await expect.poll(() => isProcessAlive(server.processId), { timeout: 60_000, interval: 20 }).toBe(false);
    const next = await start();
    expect(await inDatabase(next, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await next.stop();
  });

  test('starts after a crash if its lock file names a process that is now another program', async () => {
    const crashed = await start();
    const lockFile = join(await realpath(dataFolder()), 'cluster', 'postmaster.pid');
    process.kill(crashed.processId, 'SIGKILL');
    await crashed.stop();
    const account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
    const other = spawn('sleep', ['60'], account);
    const lock = await readFile(lockFile, 'utf8');
    await writeFile(lockFile, lock.replace(String(crashed.processId), String(other.pid)));

    const next = await start();
    const stillThere = isProcessAlive(other.pid ?? 0);
    await next.stop();
    other.kill();

    expect(stillThere).toBe(true);
  });

  test('reports the log of a PostgreSQL that cannot start', async () => {
    const started = start({ settings: { ...hastySettings, shared_buffers: 'none' } });

    await expect(started).rejects.toThrow(/shared_buffers/);
  });
});
