import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { functions } from '../../infra/functions.ts';
import { runMigrations } from '../../lib/migrations/index.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { asPlainGet } from '../http/rules/exchange.ts';
import { lint } from '../http/rules/rules.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { createDatabase } from '../stage/postgres.ts';
import { startProxy } from '../stage/proxy.ts';
import type { RawRequest, RawResponse } from '../stage/raw-request.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { apiGateway } from './api-gateway.ts';
import { type Case, usual, withBrokenTable, withoutDatabase, withoutKeys } from './table.ts';
import { startFunctions, startHandlers, startHost, type Way } from './ways.ts';

/** The answers to each request, and what breaks the rules of HTTP in them: of handlers, host and functions. */
const answers = new Map<Case, Awaited<ReturnType<typeof ask>>[]>();
const contestants: Awaited<ReturnType<typeof contestant>>[] = [];
const issuer = forAllTests(startIssuer);
const proxy = forAllTests(() => startProxy(inject('postgres')));
let tokens: Readonly<Record<string, string>>;

beforeAll(async () => {
  for (const start of [startHandlers, startHost, startFunctions]) contestants.push(await contestant(start));
  tokens = await signTokens();

  await askAll(usual);
  await issuer.stop();
  // Nobody fetches keys again within two seconds.
  await sleep(2100);
  await askAll(withoutKeys);
  const broken = 'ALTER TABLE users RENAME COLUMN id TO other';
  await Promise.all(contestants.map(({ database }) => database.query(broken)));
  await askAll(withBrokenTable);
  await proxy.refuse();
  await askAll(withoutDatabase);
}, 120_000);

afterAll(async () => {
  await Promise.all(contestants.map(({ way }) => way.stop()));
  await Promise.all(contestants.map(({ database }) => database.drop()));
});

test('the table has every operation, and every status but those of broken HTTP', async () => {
  const cases = [...usual, ...withoutKeys, ...withBrokenTable, ...withoutDatabase];
  const gateway = await apiGateway();
  const deployed = await functions();

  expect(new Set(cases.map(({ request }) => gateway(request).operationId))).toEqual(
    new Set(
      deployed.filter(({ invokedBy }) => invokedBy === 'request').map(({ operationId }) => operationId),
    ),
  );
  expect([...new Set(cases.map(({ status }) => status))].sort()).toEqual([
    200, 201, 204, 304, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 422, 500, 503,
  ]);
});

describe.each([
  ['while all is well', usual],
  ['when the keys cannot be fetched', withoutKeys],
  ['when the table is not what the service expects', withBrokenTable],
  ['when PostgreSQL is unavailable', withoutDatabase],
])(
  '%s the response keeps the rules of HTTP, and is the same to the byte from handlers, host and functions:',
  (_, cases) => {
    test.each(
      cases.map((asked) => [`${asked.status} ${asked.request.method} ${asked.title}`, asked] as const),
    )('%s', (_title, asked) => {
      const [fromHandlers, fromHost, fromFunctions] = answers.get(asked) ?? [];
      expect(fromHost?.answer.status).toBe(asked.status);
      expect(fromHandlers?.answer).toEqual(fromHost?.answer);
      expect(fromFunctions?.answer).toEqual(fromHost?.answer);
      expect(answers.get(asked)?.map(({ faults }) => faults)).toEqual([[], [], []]);
    });
  },
);

/**
 * A way with a database of its own; it is asked one request after the other. `ids` are those that have been seen, in order;
 * `named` has what has got a name: ids, and the last link to a next page.
 */
async function contestant(start: (environment: Variables) => Promise<Way>) {
  const database = await createDatabase();
  const environment = environmentOf({ ...database, host: proxy.host, port: proxy.port }, issuer);
  await runMigrations(readSettings(environment).postgres);
  const way = await start(environment);
  return { database, way, ids: [] as string[], named: new Map<string, string>() };
}

async function signTokens() {
  const now = Math.floor(Date.now() / 1000);
  return {
    both: await issuer.sign(),
    reader: await issuer.tokenFor('users.read'),
    writer: await issuer.tokenFor('users.write'),
    expired: await issuer.sign({ exp: now - 1 }),
    foreign: await issuer.sign({}, { kid: 'unknown' }),
  };
}

async function askAll(cases: readonly Case[]): Promise<void> {
  for (const asked of cases) answers.set(asked, await Promise.all(contestants.map((one) => ask(one, asked))));
}

async function ask({ way, ids, named }: (typeof contestants)[number], { request, keeps }: Case) {
  const sent = filledIn(request, { ...tokens, ...Object.fromEntries(named) });
  const { response, ...given } = await way.send(sent);
  if (keeps) named.set(keeps, JSON.parse(given.body).id);
  const [, next] = /^<(.*)>/.exec(given.headers.link ?? '') ?? [];
  if (next) named.set('next', next);
  const hasPlain = request.method === 'HEAD' || given.status === 304;
  const plain = hasPlain && (await way.send(asPlainGet(sent))).response;
  const faults = lint({ request: sent, response, ...(plain && { plain }) });
  return { answer: comparable(given, ids), faults };
}

function filledIn(request: RawRequest, values: Readonly<Record<string, string>>): RawRequest {
  const fill = (text: string) => text.replace(/\{(\w+)\}/g, (name, key: string) => values[key] ?? name);
  return {
    ...request,
    target: fill(request.target),
    fields: request.fields.map(([name, value]) => [name, fill(value)] as const),
  };
}

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
const GENERATED_ID = /[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/g;
const CURSOR = /(?<=[?&]cursor=)[\w-]+/g;
const REQUEST_ID_OF_CHANGE = /(?<="request_id":")[\da-f-]{36}/g;
const IDENTITY_OF_CHANGE = /(?<="id":"\d+-)[\da-f]{8}(?=")/g;
const GENERATED_REQUEST_ID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/** With what differs from run to run, and must, replaced by texts of the same length. */
function comparable({ status, headers, body }: RawResponse, ids: string[]): RawResponse {
  const replace = (text: string) =>
    text
      .replace(TIME, 'a time, of ISO 8601, UTC')
      .replace(REQUEST_ID_OF_CHANGE, 'generated, of thirty-six characters')
      .replace(IDENTITY_OF_CHANGE, 'identity')
      .replace(CURSOR, (cursor) => 'a cursor'.padEnd(cursor.length))
      .replace(GENERATED_ID, (id) => {
        if (!ids.includes(id)) ids.push(id);
        return `the id of ${ids.indexOf(id)}`.padEnd(id.length);
      });
  const replaced = Object.entries(headers).map(([name, value]) => [
    name,
    name === 'x-request-id' ? value.replace(GENERATED_REQUEST_ID, 'generated') : replace(value),
  ]);
  return { status, headers: Object.fromEntries(replaced), body: replace(body) };
}
