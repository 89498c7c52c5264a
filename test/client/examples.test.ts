import pg from 'pg';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startAcceptable } from '../accept/stage.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { runtimes, startFolder } from './folder.ts';
import { examples } from './readme.ts';

const titles = examples('', '').map(({ title }) => title);

const service = forAllTests(startAcceptable);
const folder = forAllTests(startFolder);
let database: pg.Client;

beforeAll(async () => {
  database = new pg.Client({ ...service.database, database: service.database.name, ssl: false });
  await database.connect();
  const found = examples(service.url, service.credentials.ACCEPT_TOKEN_URL);
  await folder.compile(Object.fromEntries(found.map(({ title, program }) => [fileOf(title), program])));
  return () => database.end();
});

beforeEach(async () => {
  await database.query('DELETE FROM users');
  await database.query('DELETE FROM idempotency_keys');
});

const fileOf = (title: string) => `example-${Number.parseInt(title, 10)}`;

test('every example is tested', () => {
  expect(titles.length).toBeGreaterThanOrEqual(11);
});

test.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'the client is tested in four runtimes',
  () => {
    const [node, ...others] = runtimes.map(({ name }) => name);

    expect(node).toMatch(/^Node 24/);
    expect(others).toEqual(['Node 20', 'Bun', 'Deno']);
  },
);

describe.each(runtimes)('in $name', (runtime) => {
  test.each(titles)('the example %s prints the documented lines', async (title) => {
    const example = examples('', '').find((one) => one.title === title);

    expect(await folder.run(runtime, fileOf(title))).toEqual(example?.prints);
  });
});
