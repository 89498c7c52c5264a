import { execFileSync } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { startDebianPostgres } from '../stage/debian-postgres.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { USERS } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { startIssuer } from '../stage/tokens.ts';
import { repeat } from '../stage/until.ts';

test('callers notice nothing while password, certificate and authority are replaced', async () => {
  const server = await forThisTest(startDebianPostgres);
  const issuer = await forThisTest(startIssuer);
  const folder = mkdtempSync(join(tmpdir(), 'user-management-rotation-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { uid, gid } = statSync(join(server.dataFolder, 'cluster'));
  chownSync(folder, uid, gid);
  const request = (options: string) => {
    const command = `openssl req -x509 -newkey rsa:2048 -nodes -days 2 ${options}`;
    execFileSync('sh', ['-c', command], { cwd: folder, stdio: 'pipe' });
  };
  const query = (...statements: readonly string[]) => inDatabase(server, ...statements);
  const useCertificateOf = async (authority: string) => {
    const subject = '-subj /CN=postgres -addext subjectAltName=IP:127.0.0.1';
    request(`-CA ${authority}.crt -CAkey ${authority}.key ${subject} -keyout server.key -out server.crt`);
    for (const name of ['server.key', 'server.crt']) chownSync(join(folder, name), uid, gid);
    await query('SELECT pg_reload_conf()');
  };
  for (const name of ['old', 'new']) request(`-subj /CN=${name} -keyout ${name}.key -out ${name}.crt`);
  const authorities = ['old', 'new'].map((name) => readFileSync(join(folder, `${name}.crt`)));
  writeFileSync(join(folder, 'both.crt'), Buffer.concat(authorities));
  await query(
    "CREATE ROLE svc LOGIN PASSWORD 'first'",
    'CREATE DATABASE svc OWNER svc',
    'ALTER SYSTEM SET ssl = on',
    `ALTER SYSTEM SET ssl_key_file = '${folder}/server.key'`,
    `ALTER SYSTEM SET ssl_cert_file = '${folder}/server.crt'`,
  );
  const access = 'host all postgres 127.0.0.1/32 trust\nhostssl all svc 127.0.0.1/32 scram-sha-256\n';
  writeFileSync(join(server.dataFolder, 'cluster/pg_hba.conf'), access);
  await useCertificateOf('old');
  const password = join(folder, 'password');
  writeFileSync(password, 'first\n');
  const variables = {
    SVC_POSTGRES_USER: 'svc',
    SVC_POSTGRES_PASSWORD_FROM: password,
    SVC_POSTGRES_SSLMODE: 'verify-full',
    NODE_EXTRA_CA_CERTS: join(folder, 'both.crt'),
  };
  const database = { ...server, name: 'svc' };
  const service = await forThisTest(startBuiltService, variables, { beside: { database, issuer } });
  const statuses = new Set<number>();
  const stop = repeat(async () => void statuses.add((await service.call('GET', USERS)).status));

  writeFileSync(password, 'second');
  await query("ALTER ROLE svc PASSWORD 'second'");
  await useCertificateOf('new');
  const [{ now } = {}] = await query('SELECT clock_timestamp() AS now');
  // As after half an hour, the limit of a session's life.
  await query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'svc'");
  expect((await service.call('POST', USERS, { email: 'rotated@example.com' })).status).toBe(201);
  const [{ oldest } = {}] = await query(blockOf('infra/docs/operate.md', 'Rotation'));
  await stop();

  expect([...statuses]).toEqual([200]);
  expect(Number(oldest)).toBeGreaterThan(Number(now));
});
