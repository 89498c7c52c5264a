import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { addressOf } from '../stage/proxy.ts';
import { USERS, type UserBody } from '../stage/responses.ts';
import type { PostgresServer } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';
import { times } from '../stage/until.ts';
import { clientEnvironment } from './client-environment.ts';

const BEFORE = 300;

type Call = typeof service.call;

const service = forAllTests(() => startService());
let folder: string;
/** The responses before the backup began. */
let users: readonly UserBody[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'user-management-restore-'));
  users = await times(BEFORE, (number) => createUser(service.call, number));
  const changed = await service.call('PATCH', USERS + users[0]?.id, { is_active: false, full_name: null });
  users = [...users.slice(1), changed.body as UserBody];
  const writing = times(200, (number) => createUser(service.call, BEFORE + number));
  await run(blockOf('infra/postgresql/README.md', 'Backup'), {
    ...inject('postgres'),
    database: service.database.name,
  });
  await writing;
  return () => rmSync(folder, { recursive: true, force: true });
});

describe('a backup made while users were written', () => {
  test('is restored on the same host', () => expectRestored(inject('postgres')));

  test('is restored on PostgreSQL 18', async () => {
    await expectRestored(await forThisTest(startDisposablePostgres));
  });
});

/** Runs the page's commands on a PostgreSQL, and a service over the result. */
async function expectRestored(server: PostgresServer): Promise<void> {
  await run(blockOf('infra/postgresql/README.md', 'Restore'), server);
  const variables = { ...addressOf(server), SVC_POSTGRES_DB: 'users_restored' };
  const over = await forThisTest(startService, variables, service);
  const restored = await listOf(over.call);
  const originals = new Map((await listOf(service.call)).map((user) => [user.id, user]));

  expect(restored).toEqual(restored.map(({ id }) => originals.get(id)));
  expect(restored).toEqual(expect.arrayContaining([...users]));
  await expectUsable(over.call, users.at(-1) as UserBody);
}

/** Versions, the unique email, and new rows. */
async function expectUsable(call: Call, user: UserBody): Promise<void> {
  const path = USERS + user.id;
  expect((await call('GET', path)).headers.etag).toBe('"2"');
  const taken = await call('POST', USERS, { email: user.email.toUpperCase() });
  const added = await call('POST', USERS, { email: 'after@example.com' });
  const changed = await call('PATCH', path, { is_active: true }, { headers: { 'If-Match': '"2"' } });
  expect([taken.status, added.status, changed.status]).toEqual([409, 201, 200]);
}

async function createUser(call: Call, number: number): Promise<UserBody> {
  const body = { email: `Äda+${number}@example.com`, full_name: `Ada "\\ 😀 ${number}\n` };
  const response = await call('POST', USERS, body);
  expect(response.status).toBe(201);
  return response.body as UserBody;
}

async function listOf(call: Call): Promise<readonly UserBody[]> {
  return (await call('GET', `${USERS}?limit=1000`)).body as readonly UserBody[];
}

async function run(commands: string, server: PostgresServer): Promise<void> {
  await promisify(execFile)('sh', ['-eu', '-c', commands], {
    cwd: folder,
    env: clientEnvironment(server),
  });
}
