import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startAcceptable } from '../accept/stage.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { blockOf, blocksOf } from '../stage/page-blocks.ts';
import { createDatabase } from '../stage/postgres.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { type Ended, MAIN, openFiles, usersNamed, variablesFor } from './command.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../infra/docs/import-export.md'), 'utf8');

const stage = acceptableUnderTest();
let copy: Awaited<ReturnType<typeof createDatabase>>;
let files: ReturnType<typeof openFiles>;

beforeAll(async () => {
  copy = await createDatabase();
  return copy.drop;
});

beforeEach(() => {
  files = openFiles();
  return files.remove;
});

// They have personal data, and the pages are tried in a clone.
afterEach(() => {
  const names = readdirSync(files.folder);
  const words = ['-c', 'safe.directory=*', 'check-ignore', '--no-index', ...names];

  expect(spawnSync('git', words, { encoding: 'utf8' }).stdout.split('\n').slice(0, -1)).toEqual(names);
});

const FROM_KEYCLOAK = blockOf('infra/docs/import-export.md', 'From Keycloak');
const FROM_PRODUCT = blockOf('infra/docs/import-export.md', 'From a product');
const FROM_OKTA = blockOf('infra/docs/import-export.md', 'From Okta');
const FROM_ANOTHER = blockOf('infra/docs/import-export.md', 'From another instance of this service');

/** Runs a block in the folder of the test to its end, and returns its exit code and what it prints. */
async function run(block: string, variables = stage.variables): Promise<Ended> {
  const users = `users() { "${process.execPath}" "${MAIN}" "$@"; }\n`;
  const ended = promisify(execFile)('bash', ['--norc', '-eu', '-c', users + block], {
    cwd: files.folder,
    env: {
      ...variables,
      PGHOST: copy.host,
      PGPORT: String(copy.port),
      PGUSER: copy.user,
      PGPASSWORD: copy.password,
      PGDATABASE: copy.name,
      PATH: process.env.PATH,
    },
  });
  const { code = 0, stdout, stderr } = await ended.catch((error) => error);
  return { code, stdout, stderr };
}

/** Runs a block that must succeed. */
async function succeed(...parameters: Parameters<typeof run>): Promise<void> {
  expect(await run(...parameters)).toMatchObject({ code: 0 });
}

/** The users with external ids, as the service has them: email, name and state, by external id. */
async function stored(variables = stage.variables): Promise<Readonly<Record<string, unknown>>> {
  await succeed('users export --out stored.ndjson', variables);
  return Object.fromEntries(
    files
      .lines('stored.ndjson')
      .filter(({ external_id }) => external_id !== undefined)
      .map(({ external_id, email, full_name, is_active }) => [external_id, [email, full_name, is_active]]),
  );
}

const find = async (email: string) => (await stage.call('GET', `?email=${email}`))[0];

test('a realm of Keycloak is imported: ids, names and states are kept, and a pair with one email is refused', async () => {
  mkdirSync(files.pathOf('keycloak'));
  files.write('keycloak/example-realm.json', '{"realm": "example"}');
  files.write(
    'keycloak/example-users-0.json',
    `{"realm": "example", "users": [
      {"id": "k1", "enabled": true, "email": "kim@example.com", "firstName": "Kim", "lastName": "Lee"},
      {"id": "k2", "enabled": false, "email": "Lou@example.com", "firstName": "Lou"},
      {"id": "k3", "enabled": true, "email": "max@example.com", "firstName": ""},
      {"id": "k4", "enabled": true, "username": "service-account-billing"},
      {"id": "k5", "enabled": true, "email": ""},
      {"id": "k6", "enabled": true, "email": "pair@example.com"}
    ]}`,
  );
  // Two users have one email: the enabled one comes first in k6, and second in k9. k11 is another caller's user.
  files.write(
    'keycloak/example-users-1.json',
    `{"realm": "example", "users": [
      {"id": "k7", "enabled": false, "email": "PAIR@example.com"},
      {"id": "k8", "enabled": false, "email": "twin@example.com"},
      {"id": "k9", "enabled": true, "email": "Twin@example.com"},
      {"id": "k10", "enabled": true, "email": "a\\\\b\\"c'd@example.com", "firstName": "Tab\\there", "lastName": "back\\\\slash 𝄞"},
      {"id": "k11", "enabled": false, "email": "ADA@example.com"}
    ]}`,
  );
  const { code, stderr, stdout } = await run(FROM_KEYCLOAK);

  expect(stdout.split('\n').map((line) => line.replace(/"line":\d+,/, ''))).toEqual([
    'left out, without an email: 2',
    ...['k7', 'k9', 'k11'].map((id) => `{"external_id":"${id}","difference":"missing"}`),
    '',
  ]);
  expect([code, stderr.split('\n')]).toEqual([
    3,
    [
      'Lines with "is_active": false whose users are active: 1 (listed in existing.ndjson)',
      'created 6, exists 1, refused 2',
      'equal 6, changed 0, missing 3, additional 0',
      '',
    ],
  ]);
  expect(await stored()).toEqual({
    k1: ['kim@example.com', 'Kim Lee', true],
    k2: ['Lou@example.com', 'Lou', false],
    k3: ['max@example.com', null, true],
    k6: ['pair@example.com', null, true],
    k8: ['twin@example.com', null, false],
    k10: ['a\\b"c\'d@example.com', 'Tab\there back\\slash 𝄞', true],
  });
  const { id } = await find('ada@example.com');
  expect(files.lines('existing.ndjson')).toEqual([
    { line: 9, email: 'ADA@example.com', external_id: 'k11', taken: { email: id }, is_active: true },
  ]);
  expect(files.lines('rejected.ndjson')).toMatchObject([
    { line: 5, email: 'PAIR@example.com', external_id: 'k7', problem: { status: 409 } },
    { line: 7, email: 'Twin@example.com', external_id: 'k9', problem: { status: 409 } },
  ]);
});

/** The columns of a product in the table of the page. */
function columnsOf(product: string): string {
  const row = PAGE.split('\n').find((line) => line.startsWith(`| ${product} |`));
  return row?.split('`').at(-2) ?? '';
}

test.each<[product: string, file: string, content: string]>([
  [
    'Auth0',
    'auth0.csv.gz',
    `user_id,email,name,blocked
"auth0|1","NAME@example.com","Ann ""A"" Other",
"sms|2",,"+1",
"auth0|3","off.NAME@example.com","Ben","true"
`,
  ],
  [
    'Firebase',
    'users.ndjson',
    `{"users": [
  {"localId": "auth0|1", "email": "NAME@example.com", "emailVerified": true, "displayName": "Ann \\"A\\" Other"},
  {"localId": "sms|2", "phoneNumber": "+1", "providerUserInfo": []},
  {"localId": "auth0|3", "email": "off.NAME@example.com", "displayName": "Ben", "disabled": true}
]}`,
  ],
  [
    'Cognito',
    'cognito.ndjson',
    `[
    {"id": "auth0|1", "enabled": true, "email": "NAME@example.com", "name": "Ann \\"A\\" Other"},
    {"id": "sms|2", "enabled": true, "email": null, "name": null},
    {"id": "auth0|3", "enabled": false, "email": "off.NAME@example.com", "name": "Ben"}
]`,
  ],
  [
    'Entra ID',
    'entra.ndjson',
    '\ufeffuserPrincipalName,displayName,surname,mail,givenName,id,userType,accountEnabled,createdDateTime\r\nx@y,"Ann ""A"" Other",Other,NAME@example.com,Ann,auth0|1,Member,True,\r\ns@y,S,,,,sms|2,Member,True,\r\nb@y,Ben,,off.NAME@example.com,,auth0|3,Guest,False,\r\n',
  ],
  [
    'Google Workspace',
    'gam.ndjson',
    `primaryEmail,id,name.familyName,name.fullName,name.givenName,suspended
NAME@example.com,auth0|1,Other,"Ann ""A"" Other",Ann,False
,sms|2,,,,False
off.NAME@example.com,auth0|3,,Ben,,True
`,
  ],
  [
    'personnel system',
    'staff.csv',
    'sep=;\r\nEmployee ID;E-Mail;Name;Active\r\nauth0|1;NAME@example.com;"Ann ""A"" Other";yes\r\nsms|2;;;\r\nauth0|3;off.NAME@example.com;Ben;no\r\n',
  ],
])('a file of %s is imported by its columns, and compared', async (product, name, content) => {
  const own = name.replace(/\W/g, '');
  const text = content.replaceAll('NAME@', `${own}@`).replaceAll('auth0|', `${own}|`);
  files.write(name, name.endsWith('gz') ? gzipSync(text) : text);
  const filled = FROM_PRODUCT.replace(/^file=.*$/m, `file=${name}`).replace(
    /^columns=.*$/m,
    `columns='${columnsOf(product)}'`,
  );
  const first = await run(filled);
  const again = await run(filled);

  // A user without an email is refused.
  const difference = '"external_id":"sms|2","difference":"missing"}\n';
  expect(first).toMatchObject({ code: 3, stdout: expect.stringContaining(difference) });
  expect(first.stderr).toContain('created 2, exists 0, refused 1\n');
  expect(first.stderr).toContain('equal 2, changed 0, missing 1, additional 0\n');
  expect(again).toEqual(first);
  expect(await stored()).toMatchObject({
    [`${own}|1`]: [`${own}@example.com`, 'Ann "A" Other', true],
    [`${own}|3`]: [`off.${own}@example.com`, 'Ben', false],
  });
});

test('users of Okta are imported: ids, names and states are kept', async () => {
  files.write(
    'okta.json',
    `[{"id": "o1", "status": "ACTIVE", "profile": {"email": "o1@example.com", "firstName": "F", "lastName": "o1"}}]
[{"id": "o2", "status": "SUSPENDED", "profile": {"email": "o2@example.com", "firstName": "F", "lastName": "o2"}}]`,
  );
  expect(await run(FROM_OKTA)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('created 2, exists 0, refused 0'),
  });
  expect(await stored()).toMatchObject({
    o1: ['o1@example.com', 'F o1', true],
    o2: ['o2@example.com', 'F o2', false],
  });
});

test('the nightly job makes users equal to the file of a personnel system', async () => {
  const other = await forThisTest(startAcceptable);
  const variables = await variablesFor(other);
  const block = blockOf('infra/docs/import-export.md', 'Nightly job, sh');
  const header = 'Employee ID,E-Mail,Name,Active\n';
  const lines = Array.from({ length: 60 }, (_, n) => `p${n},p${n}@example.com,P ${n},yes\n`);
  files.write('staff.csv', header + lines.join(''));
  const first = await run(block, variables);
  files.write('staff.csv', header + lines.slice(1).join('').replace('P 7,yes', 'P Seven,no'));
  const second = await run(block, variables);
  files.write('staff.csv', header + lines.slice(10).join(''));
  const third = await run(block, variables);

  expect([first.code, first.stderr]).toEqual([
    0,
    'created 60, updated 0, deactivated 0, equal 0, refused 0\n',
  ]);
  expect([second.code, second.stderr]).toEqual([
    0,
    'created 0, updated 0, deactivated 2, equal 58, refused 0\n',
  ]);
  expect([third.code, third.stderr]).toMatchObject([3, expect.stringContaining('Nothing is written')]);
});

test('the CronJob of the page runs the command, and its alarms ask for what kube-state-metrics has', async () => {
  const [job = '', alarms = ''] = blocksOf('infra/docs/import-export.md', 'Nightly job, yaml', 2);
  const { metadata, spec } = parse(job);
  const [container] = spec.jobTemplate.spec.template.spec.containers;
  const words: readonly string[] = container.command;
  files.write('staff.csv', 'external_id,email\nc1,c1@example.com\n');
  const command = words.map((word) => word.replace('/data/', '')).join(' ');

  const variables = await variablesFor(await forThisTest(startAcceptable));
  expect(await run(command, variables)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^created 1, /),
  });
  expect(container.volumeMounts).toEqual([{ name: 'data', mountPath: '/data', readOnly: true }]);
  expect(parse(alarms).map(({ expr }: { expr: string }) => expr)).toEqual([
    `kube_job_status_failed{job_name=~"${metadata.name}-.*"} > 0`,
    `time() - max(kube_cronjob_status_last_successful_time{cronjob="${metadata.name}"}) > 26 * 3600`,
  ]);
});

test('an export of this service is imported into another instance: states and external ids are kept', async () => {
  const other = await forThisTest(startAcceptable);
  files.write(
    'inactive.ndjson',
    `{"email": "moved.1@example.com", "is_active": true, "external_id": "m1"}
{"email": "moved.2@example.com", "is_active": false, "external_id": "m2"}
`,
  );
  await run('users import inactive.ndjson; users export --out exported.ndjson');
  const variables = await variablesFor(other);
  const { code, stderr } = await run(FROM_ANOTHER, variables);
  const moved = await stored(variables);

  // Three users exist in both instances.
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(/exists 3, refused 0\nequal \d+, changed 0, missing 3, /),
  ]);
  const users = files
    .lines('exported.ndjson')
    .filter(({ email }) => !/^(ada|grace|mary)@/.test(String(email)));
  expect(moved).toEqual(
    Object.fromEntries(
      users.map(({ id, external_id, email, full_name, is_active }) => [
        external_id ?? id,
        [email, full_name, is_active],
      ]),
    ),
  );
  expect(moved).toMatchObject({ m1: [expect.anything(), null, true], m2: [expect.anything(), null, false] });
});

test.each([
  [
    'keycloak/realm.json',
    FROM_KEYCLOAK,
    '{"users": [{"email": "jq@example.com", "id": "1"}, {"email": 1}, 7',
  ],
  ['exported.ndjson', FROM_ANOTHER, '{"email": "jq@example.com"}\n7'],
])('a command that fails to read %s ends the recipe: nothing is imported', async (name, recipe, content) => {
  mkdirSync(files.pathOf('keycloak'));
  files.write(name, content);
  const { code, stderr } = await run(recipe);

  expect(code).toBeGreaterThan(0);
  expect(stderr).not.toContain('created');
  expect(await find('jq@example.com')).toBe(undefined);
});

test('the nightly export is complete in the first night, has the changes afterwards, and starts again after a 410', async () => {
  const block = blockOf('infra/docs/import-export.md', 'Export every night');
  await succeed(block);
  const { id } = await stage.call('POST', '', { email: 'night@example.com' });
  await succeed(block);
  const changes = files.lines('changes.ndjson');
  files.write('cursor', btoa('.999999').replace(/=+$/, ''));
  await succeed(block);

  expect(changes).toMatchObject([{ type: 'user.created', subject: id }]);
  expect(files.lines('users.ndjson').some(({ email }) => email === 'night@example.com')).toBe(true);
  expect(files.read('cursor')).not.toMatch(/OTk5OTk5/);
});

test('the commands that look up and search find the user, its changes and their callers', async () => {
  const { id } = await find('mary@example.com');
  const lookUp = await run(blockOf('infra/docs/import-export.md', 'Look up'));
  const search = blockOf('infra/docs/audit.md', 'Search and export')
    .replace('follow ', 'follow --once ')
    .replace('billing', 'command');
  const [shown = ''] = /(?<=^users changes )\S+/m.exec(search) ?? [];
  await succeed(search.replace(shown, id));
  await stage.call('DELETE', id);
  const { code, stdout, stderr } = await run(search.replace(shown, id).replace(/^users export.*/m, ''));

  expect([lookUp.code, lookUp.stdout]).toEqual([0, expect.stringContaining('"email":"ada@example.com"')]);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/"user\.created".*\n.*"user\.deleted".*\n.*"user\.deleted".*\n.*\tcommand\n$/);
});

test('the mirror equals the table after creates, updates and deletes', async () => {
  const [first = '', again = ''] = blocksOf('infra/docs/import-export.md', 'Mirror into another database', 2);
  await succeed(first);
  files.write('more.ndjson', usersNamed('mirrored', 250));
  await succeed('users import more.ndjson');
  const change = async (email: string, method: string, body?: object) =>
    stage.call(method, (await find(email)).id, body);
  await change('ada@example.com', 'PATCH', { full_name: 'A "quoted" \\ name\n' });
  await change('grace@example.com', 'DELETE');
  await change('mirrored.7@example.com', 'DELETE');
  const { url, tokens } = stage.service;
  await succeed(again, {
    USERS_URL: `${url}/`,
    USERS_TOKEN_URL: tokens.tokenEndpoint,
    ...{ USERS_CLIENT_ID: 'mirror', USERS_CLIENT_SECRET: 's', USERS_SCOPE: 'users.read users.write' },
  });
  await succeed(again);

  const client = new pg.Client({ ...copy, database: copy.name, ssl: false });
  await client.connect();
  const { rows } = await client.query('SELECT "user" FROM users_copy ORDER BY "user"->>\'created_at\', id');
  await client.end();
  await succeed('users export --out table.ndjson');
  expect(rows.map(({ user }) => user)).toEqual(files.lines('table.ndjson'));
  expect(rows.length).toBeGreaterThan(250);
});
