import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { startPostgres } from '../../host/development/postgres.ts';
import { hastySettings } from '../stage/postgres.ts';
import { USERS, type UserBody } from '../stage/responses.ts';
import type { PostgresServer } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';
import { clientEnvironment } from './client-environment.ts';

const PAGE = 'infra/postgresql/README.md';
const BEFORE = 300;

type Call = typeof service.call;

let folder: string;
let service: Awaited<ReturnType<typeof startService>>;
/** The responses before the backup began. */
let users: readonly UserBody[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'user-management-restore-'));
  service = await startService();
  users = await Promise.all(Array.from({ length: BEFORE }, (_, number) => createUser(service.call, number)));
  const changed = await service.call('PATCH', USERS + users[0]?.id, { is_active: false, full_name: null });
  users = [...users.slice(1), (await changed.json()) as UserBody];
  const writing = Promise.all(
    Array.from({ length: 200 }, (_, number) => createUser(service.call, BEFORE + number)),
  );
  await runCommandsOf('Backup', { ...inject('postgres'), database: service.database.name });
  await writing;
  return async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  };
});

describe('a backup made while users were written', () => {
  test('is restored on the same host', () => expectRestored(inject('postgres')));

  test('is restored on PostgreSQL 18', async () => {
    // Not within the other folder, which PostgreSQL's account cannot enter.
    const dataFolder = mkdtempSync(join(tmpdir(), 'user-management-restore-postgres-'));
    const newer = await startPostgres({ dataFolder, settings: hastySettings });
    onTestFinished(async () => {
      await newer.stop();
      rmSync(dataFolder, { recursive: true, force: true });
    });
    await expectRestored(newer);
  });
});

/** Runs the page's commands on a PostgreSQL, and a service over the result. */
async function expectRestored(server: PostgresServer): Promise<void> {
  await runCommandsOf('Restore', server);
  const over = await startService(
    {
      SVC_POSTGRES_HOST: server.host,
      SVC_POSTGRES_PORT: String(server.port),
      SVC_POSTGRES_DB: 'users_restored',
    },
    service,
  );
  onTestFinished(over.stop);
  const restored = await listOf(over.call);
  const originals = new Map((await listOf(service.call)).map((user) => [user.id, user]));

  expect(restored).toEqual(restored.map(({ id }) => originals.get(id)));
  expect(restored).toEqual(expect.arrayContaining([...users]));
  await expectUsable(over.call, users.at(-1) as UserBody);
}

/** Versions, the unique email, and new rows. */
async function expectUsable(call: Call, user: UserBody): Promise<void> {
  const path = USERS + user.id;
  expect((await call('GET', path)).headers.get('etag')).toBe('"2"');
  const taken = await call('POST', USERS, { email: user.email.toUpperCase() });
  const added = await call('POST', USERS, { email: 'after@example.com' });
  const changed = await call('PATCH', path, { is_active: true }, { headers: { 'If-Match': '"2"' } });
  expect([taken.status, added.status, changed.status]).toEqual([409, 201, 200]);
}

async function createUser(call: Call, number: number): Promise<UserBody> {
  const body = { email: `Äda+${number}@example.com`, full_name: `Ada "\\ 😀 ${number}\n` };
  const response = await call('POST', USERS, body);
  expect(response.status).toBe(201);
  return (await response.json()) as UserBody;
}

async function listOf(call: Call): Promise<readonly UserBody[]> {
  return (await call('GET', `${USERS}?limit=1000`)).json() as Promise<readonly UserBody[]>;
}

/** Runs the first block of commands under that heading of the page without a change. */
async function runCommandsOf(heading: string, server: PostgresServer): Promise<void> {
  const [, section = ''] = readFileSync(PAGE, 'utf8').split(`\n## ${heading}\n`);
  const [, commands = 'exit 1'] = /```sh\n(.*?)```/s.exec(section) ?? [];
  await promisify(execFile)('sh', ['-eu', '-c', commands], {
    cwd: folder,
    env: clientEnvironment(server),
  });
}
