import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { connectTo, written } from '../stage/connection.ts';
import { BATCH, freshAddress, USERS } from '../stage/responses.ts';

/** Characters of a field value or a target. With the token the head is just below the limit of Node's parser. */
const SIZE = 15_000;
/** The default of SVC_BODY_LIMIT. */
const BODY_SIZE = 65_536;
const CHANGES = `${USERS}changes`;

const filled = (unit: string, size = SIZE) => unit.repeat(Math.floor(size / unit.length));
const ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
const PARAMETERS = ['email', 'external_id', 'ids', 'cursor', 'sort', 'limit'];

const VALUES = [
  `a${filled('\t')}a`,
  `a${filled(' ')}a`,
  `"${filled('\\"')}`,
  ...[',', 'a,', '"",', 'W/"1",', '"', ';a=1', 'a=1,', 'a.', 'a@', '%25', '%2525', '\xe9', 'eyJhbGciOi '].map(
    (unit) => filled(unit),
  ),
];
const PATHS = ['/', 'a/', '%41', '%2525', '%2f', '"', '"a', 'a@/', 'eyJhbGciOi/'].map(
  (unit) => `/${filled(unit)}`,
);
const QUERIES = [
  ...['&', 'a&', 'ids&', 'ids[]&', 'ids[0]=&', 'ids%5B%5D=&'].map((unit) => filled(unit)),
  ...['%ff', '%EF%BF%BD'].map((unit) =>
    PARAMETERS.map((name) => `${name}=${filled(unit, SIZE / 7)}`).join('&'),
  ),
  ...[...PARAMETERS, 'created_after', 'skip', 'exclude_actor'].flatMap((name) =>
    ['a@', '+', '0', '%00', '.', ',', `${ID},`].map((unit) => `${name}=${filled(unit)}`),
  ),
];
const BODIES = [
  filled('{', BODY_SIZE),
  `${filled('[', BODY_SIZE / 2)}${filled(']', BODY_SIZE / 2)}`,
  ...['"a":1,', '"__proto__":1,', '"email":"a",', ' '].map(
    (unit) => `{${filled(unit, BODY_SIZE - 20)}"b":1}`,
  ),
  ...['a@', '\\u0000', '\\ud800', '\u0000'].map((unit) => `{"email":"${filled(unit, BODY_SIZE - 20)}"}`),
  ...['{},', '1,', '[],', '{"email":1},'].map((unit) => `{"items":[${filled(unit, BODY_SIZE - 20)}1]}`),
];

const service = await startBuiltService({ SVC_OTEL_ENABLED: 'true', OTEL_TRACES_SAMPLER: 'always_on' });
afterAll(service.remove);
const Authorization = `Bearer ${await service.issuer.sign()}`;
const user = (await service.call('POST', USERS, { email: freshAddress() })).headers.location;
const connection = await connectTo(service.url);
afterAll(connection.close);
await costOf([`GET ${user}`], 5, 200);
/** The cost of a read. */
const ordinary = await costOf([`GET ${user}`], 5, 200);

/** Milliseconds of the service's CPU time for one such request: the median of the rounds. */
async function costOf([line, fields = {}, body = '']: Costed, rounds: number, count = 4): Promise<number> {
  const content = body && { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  const all = { Host: 'localhost', Authorization, ...content, ...fields };
  const request = written(line, Object.entries(all), Buffer.from(body, 'latin1'));
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begun = cpuTime();
    for (let index = 0; index < count; index += 1) {
      connection.send(request);
      const { status } = await connection.answer();
      expect([200, 201, 304, 401, 404, 412, 413, 415, 417, 422]).toContain(status);
    }
    costs.push((cpuTime() - begun) / count);
  }
  return costs.sort((one, other) => one - other)[Math.floor(rounds / 2)] as number;
}

/** In milliseconds, of all threads of the service. */
function cpuTime(): number {
  const threads = `/proc/${service.processId}/task`;
  const times = readdirSync(threads).map((id) => readFileSync(`${threads}/${id}/schedstat`, 'utf8'));
  return times.reduce((sum, text) => sum + Number.parseInt(text, 10) / 1e6, 0);
}

type Costed = readonly [line: string, fields?: Record<string, string>, body?: string];

/** The requests that cost more than `limit` ordinary ones. What seems to is measured again, in more rounds. */
async function findExpensive(limit: number, requests: readonly Costed[]) {
  const found: string[] = [];
  for (const request of requests) {
    if ((await costOf(request, 1)) / ordinary <= limit) continue;
    const costs = (await costOf(request, 5)) / ordinary;
    if (costs > limit) found.push(`${costs.toFixed(1)}: ${JSON.stringify(request).slice(0, 100)}`);
  }
  return found;
}

test('no header field, path or query costs more than ten ordinary requests', {
  timeout: 180_000,
}, async () => {
  const names = {
    [`GET ${CHANGES}`]: 'Accept Authorization X-Request-ID User-Agent traceparent tracestate baggage Cookie',
    [`POST ${USERS}`]: 'Idempotency-Key Content-Type Content-Encoding Expect',
    [`PATCH ${user}`]: 'If-Match If-None-Match',
  };
  const fields = Object.entries(names).flatMap(([line, ofLine]) =>
    ofLine
      .split(' ')
      .flatMap((name) =>
        VALUES.map((value): Costed => [line, { [name]: value }, line.startsWith('GET') ? '' : '{}']),
      ),
  );
  const paths = PATHS.map((path): Costed => [`GET ${path}`]);
  const queries = QUERIES.flatMap((query) =>
    [USERS, CHANGES].map((path): Costed => [`GET ${path}?${query}`]),
  );
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`a${index}`, '']));

  expect(await findExpensive(10, [...fields, ...paths, ...queries, [`GET ${user}`, many]])).toEqual([]);
});

test('a body costs what its bytes cost, whatever it contains', { timeout: 180_000 }, async () => {
  const requests = [USERS, BATCH].flatMap((path) => BODIES.map((body): Costed => [`POST ${path}`, {}, body]));

  // It has a thousand times the bytes of a create. middy's parser calls a function for each value.
  expect(await findExpensive(100, requests)).toEqual([]);
});
