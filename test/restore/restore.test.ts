import { execFile } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startPostgres } from '../../host/development/postgres.ts';
import { startHost } from '../../host/host.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { callerOf, untilReady } from '../stage/built-service.ts';
import { hastySettings } from '../stage/postgres.ts';
import type { PostgresServer } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';

const PAGE = 'infra/postgresql/README.md';
const BEFORE = 300;

type User = { readonly id: string; readonly email: string };
type Call = ReturnType<typeof callerOf>;

let folder: string;
let service: Awaited<ReturnType<typeof startService>>;
/** The responses before the backup began. */
let users: readonly User[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'user-management-restore-'));
  service = await startService();
  users = await Promise.all(Array.from({ length: BEFORE }, (_, number) => createUser(service.call, number)));
  users = [...users.slice(1), await updated(users[0] as User)];
  const writing = Promise.all(
    Array.from({ length: 200 }, (_, number) => createUser(service.call, BEFORE + number)),
  );
  await runCommandsOf('Backup', { ...inject('postgres'), database: service.database.name });
  await writing;
});

afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('a backup made while users were written', () => {
  test('is restored on the same host', () => expectRestored(inject('postgres')));

  test('is restored on PostgreSQL 18', async () => {
    // Not within the other folder, which PostgreSQL's account cannot enter.
    const dataFolder = mkdtempSync(join(tmpdir(), 'user-management-restore-postgres-'));
    const newer = await startPostgres({ dataFolder, settings: hastySettings });
    try {
      await expectRestored(newer);
    } finally {
      await newer.stop();
      rmSync(dataFolder, { recursive: true, force: true });
    }
  });
});

/** Runs the page's commands on a PostgreSQL, and a service over the result. */
async function expectRestored(server: PostgresServer): Promise<void> {
  await runCommandsOf('Restore', server);
  const log = openSync(join(folder, 'log'), 'a');
  const host = await startHost(
    readSettings({
      ...service.environment,
      SVC_POSTGRES_HOST: server.host,
      SVC_POSTGRES_PORT: String(server.port),
      SVC_POSTGRES_DB: 'users_restored',
    }),
    { logTo: log },
  );
  try {
    await untilReady(host.url);
    const call = callerOf(host.url, service.issuer);
    const restored = await listOf(call);
    const originals = new Map((await listOf(service.call)).map((user) => [user.id, user]));

    expect(restored).toEqual(restored.map(({ id }) => originals.get(id)));
    expect(restored).toEqual(expect.arrayContaining([...users]));
    await expectUsable(call, users.at(-1) as User);
  } finally {
    await host.shutDown();
    closeSync(log);
  }
}

/** Versions, the unique email, and new rows. */
async function expectUsable(call: Call, user: User): Promise<void> {
  const path = `/api/v1/users/${user.id}`;
  const [original, restored] = await Promise.all([service.call('GET', path), call('GET', path)]);
  expect(restored.headers.get('etag')).toBe('"2"');
  expect(restored.headers.get('etag')).toBe(original.headers.get('etag'));

  const taken = await call('POST', '/api/v1/users/', { email: user.email.toUpperCase() });
  const added = await call('POST', '/api/v1/users/', { email: 'after@example.com' });
  const changed = await call('PATCH', path, { is_active: true }, { headers: { 'If-Match': '"2"' } });
  expect([taken.status, added.status, changed.status]).toEqual([409, 201, 200]);
}

async function createUser(call: Call, number: number): Promise<User> {
  const body = { email: `Äda+${number}@example.com`, full_name: `Ada "\\ 😀 ${number}\n` };
  const response = await call('POST', '/api/v1/users/', body);
  expect(response.status).toBe(201);
  return (await response.json()) as User;
}

async function updated(user: User): Promise<User> {
  const response = await service.call('PATCH', `/api/v1/users/${user.id}`, {
    is_active: false,
    full_name: null,
  });
  return (await response.json()) as User;
}

async function listOf(call: Call): Promise<readonly User[]> {
  return (await call('GET', '/api/v1/users/?limit=1000')).json() as Promise<readonly User[]>;
}

/** Runs the first block of commands under that heading of the page without a change. */
async function runCommandsOf(heading: string, server: PostgresServer): Promise<void> {
  const [, section = ''] = readFileSync(PAGE, 'utf8').split(`\n## ${heading}\n`);
  const commands = /```sh\n(.*?)```/s.exec(section)?.[1];
  if (!commands) throw new Error(`${PAGE} has no commands under "${heading}"`);
  await promisify(execFile)('sh', ['-eu', '-c', commands], {
    cwd: folder,
    env: {
      PATH: `${inject('postgresPrograms')}:${process.env.PATH}`,
      PGHOST: server.host,
      PGPORT: String(server.port),
      PGUSER: server.user,
      PGPASSWORD: server.password,
      PGDATABASE: server.database,
    },
  });
}
