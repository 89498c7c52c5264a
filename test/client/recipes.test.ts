import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Acceptable, startAcceptable } from '../accept/stage.ts';
import { createDatabase } from '../stage/postgres.ts';
import { MAIN, openFiles, usersNamed, variablesFor } from './command.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../infra/import-export.md'), 'utf8');

let service: Acceptable;
let given: NodeJS.ProcessEnv;
let copy: Awaited<ReturnType<typeof createDatabase>>;
let files: ReturnType<typeof openFiles>;

beforeAll(async () => {
  [service, copy] = await Promise.all([startAcceptable(), createDatabase()]);
  given = await variablesFor(service);
});

beforeEach(() => {
  files?.remove();
  files = openFiles();
});

afterAll(async () => {
  files.remove();
  await Promise.all([service.stop(), copy.drop()]);
});

/** The blocks of a section of the page. */
function blocksOf(heading: string): readonly string[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block);
}

/** Runs a block in the folder of the test, and returns what it prints on standard error. */
async function run(block: string | undefined): Promise<string> {
  const users = `users() { "${process.execPath}" "${MAIN}" "$@"; }\n`;
  const { host, port, user, password, name } = copy;
  const database = {
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: user,
    PGPASSWORD: password,
    PGDATABASE: name,
  };
  const { stderr } = await promisify(execFile)('bash', ['--norc', '-c', users + block], {
    cwd: files.folder,
    env: { ...given, ...database, PATH: process.env.PATH },
  });
  return stderr;
}

const headers = () => ({ authorization: `Bearer ${given.USERS_TOKEN}`, 'content-type': 'application/json' });

async function find(email: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${service.url}/api/v1/users/?email=${email}`, { headers: headers() });
  return (await response.json())[0];
}

test('a realm of Keycloak is imported: names are joined, and disabled users are deactivated', async () => {
  const users = [
    { id: '1', username: 'kim', enabled: true, email: 'kim@example.com', firstName: 'Kim', lastName: 'Lee' },
    { id: '2', username: 'lou', enabled: false, email: 'Lou@example.com', firstName: 'Lou' },
    { id: '3', username: 'max', enabled: true, email: 'max@example.com', firstName: '' },
    { id: '4', username: 'service-account-billing', enabled: true },
  ];
  files.write('realm.json', JSON.stringify({ realm: 'example', users }));
  const [first, second] = blocksOf('Move from Keycloak');

  expect(await run(first)).toBe('created 3, exists 0, refused 0\n');
  await run(second);
  expect(await find('kim@example.com')).toMatchObject({ full_name: 'Kim Lee', is_active: true });
  expect(await find('lou@example.com')).toMatchObject({ full_name: 'Lou', is_active: false });
  expect(await find('max@example.com')).toMatchObject({ full_name: null, is_active: true });
});

test('an export of Auth0 is imported', async () => {
  const lines = [
    { user_id: 'auth0|1', email: 'ann@example.com', name: 'Ann Other' },
    { user_id: 'auth0|2', email: 'ben@example.com', name: 'ben@example.com' },
    { user_id: 'google-oauth2|3', email: 'ANN@example.com', name: 'Ann O.' },
    { user_id: 'sms|4', name: '+1 555' },
  ];
  files.write('auth0.json.gz', gzipSync(lines.map((line) => `${JSON.stringify(line)}\n`).join('')));
  const [block] = blocksOf('Move from Auth0');

  expect(await run(block)).toBe('created 2, exists 1, refused 0\n');
  expect(await find('ann@example.com')).toMatchObject({ full_name: 'Ann Other' });
  expect(await find('ben@example.com')).toMatchObject({ full_name: null });
});

test('the nightly export is complete in the first night, has the changes afterwards, and starts again after a 410', async () => {
  const [block] = blocksOf('Export every night');
  await run(block);
  const { id } = await (
    await fetch(`${service.url}/api/v1/users/`, {
      method: 'POST',
      headers: headers(),
      body: '{"email":"night@example.com"}',
    })
  ).json();
  await run(block);
  const changes = files.lines('changes.ndjson');
  files.write('cursor', btoa('.999999').replace(/=+$/, ''));
  await run(block);

  expect(changes).toMatchObject([{ type: 'user.created', subject: id }]);
  expect(files.lines('users.ndjson').some(({ email }) => email === 'night@example.com')).toBe(true);
  expect(files.read('cursor')).not.toMatch(/OTk5OTk5/);
});

test('the mirror equals the table after creates, updates and deletes', async () => {
  const [first, again] = blocksOf('Mirror into another database');
  await run(first);
  files.write('more', usersNamed('mirrored', 250));
  await run('users import more');
  const change = (email: string, method: string, body?: string) =>
    find(email).then(({ id }) =>
      fetch(`${service.url}/api/v1/users/${id}`, { method, headers: headers(), ...(body && { body }) }),
    );
  await change('ada@example.com', 'PATCH', '{"full_name":"A \\"quoted\\" \\\\ name\\n"}');
  await change('grace@example.com', 'DELETE');
  await change('mirrored.7@example.com', 'DELETE');
  await run(again);
  await run(again);

  const client = new pg.Client({ ...copy, database: copy.name, ssl: false });
  await client.connect();
  const { rows } = await client.query('SELECT "user" FROM users_copy ORDER BY "user"->>\'created_at\', id');
  await client.end();
  await run('users export --out table');
  expect(rows.map(({ user }) => user)).toEqual(files.lines('table'));
  expect(rows.length).toBeGreaterThan(250);
});
