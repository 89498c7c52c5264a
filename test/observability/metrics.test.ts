import { expect, test } from 'vitest';
import { METRICS } from '../../lib/observability/metric-list.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startTracedService, type TracedService } from '../stage/built-service.ts';
import { nextOf } from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT } from '../stage/locks.ts';
import type { ReceivedPoint } from '../stage/otlp-receiver.ts';
import { createPipe } from '../stage/pipe.ts';
import { USERS } from '../stage/responses.ts';
import { times, until } from '../stage/until.ts';

let service: TracedService;

const often = { OTEL_METRICS_EXPORTER: 'otlp', OTEL_METRIC_EXPORT_INTERVAL: '100' };

const start = async (variables: Variables = {}) => {
  service = await forThisTest(startTracedService, { ...often, ...variables });
};

/** The latest points of a metric, as soon as they satisfy the condition. */
function untilPoints(metric: string, isWanted: (points: readonly ReceivedPoint[]) => boolean) {
  return until(`${metric} as wanted: ${JSON.stringify(latest(metric))}`, () => {
    const points = latest(metric);
    return points.length > 0 && isWanted(points) && points;
  });
}

function latest(metric: string): readonly ReceivedPoint[] {
  const all = service.receiver.points().filter((point) => point.metric === metric);
  const byAttributes = new Map(all.map((point) => [JSON.stringify(point.attributes), point]));
  return [...byAttributes.values()];
}

const valueAt = (points: readonly ReceivedPoint[], attributes: object) =>
  points.find((point) => JSON.stringify(point.attributes) === JSON.stringify(attributes))?.value;

test('http.server.request.duration counts requests by method, route and status, in seconds', async () => {
  await start();
  const begun = performance.now();
  await service.call('POST', USERS, { email: 'metrics@example.com' });
  await service.call('POST', USERS, { email: 'metrics@example.com' });
  await service.call('GET', USERS);
  await service.call('GET', `${USERS}x`);
  await service.call('GET', '/nowhere/jane@example.com');
  await service.database.drop();
  await service.call('GET', USERS);
  const elapsed = (performance.now() - begun) / 1000;
  const points = await untilPoints('http.server.request.duration', ({ length }) => length >= 6);

  const counts = points.map(({ attributes, value }) => [
    attributes['http.request.method'],
    attributes['http.route'],
    attributes['http.response.status_code'],
    attributes['error.type'],
    value,
  ]);
  expect(counts).toEqual([
    ['POST', USERS, 201, undefined, 1],
    ['POST', USERS, 409, undefined, 1],
    ['GET', USERS, 200, undefined, 1],
    ['GET', `${USERS}{user_id}`, 422, undefined, 1],
    ['GET', undefined, 404, undefined, 1],
    ['GET', USERS, 503, '503', 1],
  ]);
  expect(new Set(points.map(({ unit }) => unit))).toEqual(new Set(['s']));
  expect(JSON.stringify(points)).not.toContain('jane');
  for (const { sum } of points) expect(sum).toSatisfy((seconds: number) => seconds > 0 && seconds < elapsed);
});

test('requests in flight are counted by method and scheme, connections by state, and requests that wait for a connection', async () => {
  await start({ ...PATIENT, SVC_POSTGRES_POOL_SIZE: '2' });
  const lock = await holdUsers(service.database);
  const forwarded = { headers: { 'x-forwarded-proto': 'https' } };
  const held = Promise.all([
    times(3, () => service.call('GET', USERS)),
    times(2, () => service.call('GET', USERS, undefined, forwarded)),
  ]);

  const inFlight = (scheme: string) => ({ 'http.request.method': 'GET', 'url.scheme': scheme });
  const untilInFlight = (http: number, https: number) =>
    untilPoints(
      'http.server.active_requests',
      (points) => valueAt(points, inFlight('http')) === http && valueAt(points, inFlight('https')) === https,
    );
  const inState = (state: string) => ({
    'db.client.connection.pool.name': 'postgresql',
    'db.client.connection.state': state,
  });
  await untilInFlight(3, 2);
  await untilPoints('db.client.connection.count', (points) => valueAt(points, inState('used')) === 2);
  await untilPoints('db.client.connection.pending_requests', ([point]) => point?.value === 3);
  await lock.release();
  await held;

  await untilInFlight(0, 0);
  await untilPoints('db.client.connection.pending_requests', ([point]) => point?.value === 0);
  const connections = await untilPoints(
    'db.client.connection.count',
    (points) => valueAt(points, inState('used')) === 0,
  );
  expect(valueAt(connections, inState('idle'))).toBe(2);
});

test('requests that admission refuses are counted by reason and caller, and are not requests in flight', async () => {
  await start({ ...PATIENT, SVC_POSTGRES_POOL_SIZE: '1' });
  const headers = { authorization: `Bearer ${await service.issuer.sign()}` };
  const read = () => service.call('GET', USERS, undefined, { headers });
  // The service now knows the caller, as it does not with a token of another second, and has a session.
  await read();
  const lock = await forThisTest(holdUsers, service.database);
  const admitted = times(17, read);
  // With one statement in progress and 16 that wait, admission queues further requests.
  await untilPoints('db.client.connection.pending_requests', ([point]) => point?.value === 16);
  const refused = times(23, read);

  const points = await untilPoints(
    'requests.refused',
    (found) => valueAt(found, { reason: 'waited_too_long', caller: 'known' }) === 23,
  );
  await untilPoints('http.server.active_requests', ([point]) => point?.value === 17);
  await refused;
  await lock.release();
  await admitted;

  expect(points.map(({ attributes: { caller, reason }, value }) => [caller, reason, value])).toEqual([
    ['known', 'no_room', 0],
    ['known', 'waited_too_long', 23],
    ['known', 'caller_left', 0],
    ['unverified', 'no_room', 0],
    ['unverified', 'waited_too_long', 0],
    ['unverified', 'caller_left', 0],
  ]);
});

test('changes without a position are counted with their age, and so are waiting requests', async () => {
  await start();
  await untilPoints('changes.unnumbered', ([point]) => point?.value === 0);
  expect(latest('changes.unnumbered.age')).toMatchObject([{ unit: 's', value: 0 }]);
  await service.call('POST', USERS, { email: 'a@example.com' });
  await untilPoints('changes.unnumbered', ([point]) => point?.value === 1);
  await untilPoints('changes.unnumbered.age', ([point]) => Number(point?.value) > 0);

  const end = await service.call('GET', `${USERS}changes?cursor=now&limit=0`);
  await untilPoints('changes.unnumbered', ([point]) => point?.value === 0);
  const waiting = service.call('GET', `${nextOf(end)}&wait=20`);
  await untilPoints('changes.waiting', ([point]) => point?.value === 1);
  await untilPoints('http.server.active_requests', ([point]) => point?.value === 0);
  await service.call('POST', USERS, { email: 'b@example.com' });
  expect((await waiting).body).toHaveLength(1);
  await untilPoints('changes.waiting', ([point]) => point?.value === 0);
});

test('exactly the metrics of the list are created, with their kinds and units, and with plausible values', async () => {
  await start();
  await service.call('GET', USERS);
  const made = () =>
    new Map(
      service.receiver
        .points()
        .map(({ metric, instrument: kind, unit }) => [metric, { kind, unit }] as const),
    );
  await until('all metrics', () => made().size >= Object.keys(METRICS).length);

  expect(Object.fromEntries(made())).toEqual(
    Object.fromEntries(Object.entries(METRICS).map(([name, { kind, unit }]) => [name, { kind, unit }])),
  );
  const [[memory], [delay]] = [latest('process.memory.usage'), latest('nodejs.eventloop.delay.p99')];
  expect(memory?.value).toSatisfy((bytes: number) => bytes > 20e6 && bytes < 2e9);
  expect(delay?.value).toSatisfy((seconds: number) => seconds > 0 && seconds < 5);
});

test('hits and misses of the verified tokens and refreshes of the keys are counted', async () => {
  await start();
  const headers = { authorization: `Bearer ${await service.issuer.sign()}` };
  for (let sent = 0; sent < 4; sent += 1) await service.call('GET', USERS, undefined, { headers });
  const lookups = await untilPoints('token_cache.lookups', (points) =>
    points.some(({ value }) => value === 3),
  );
  const refreshes = await untilPoints('jwks.refreshes', () => true);

  expect(valueAt(lookups, { outcome: 'hit' })).toBe(3);
  expect(valueAt(lookups, { outcome: 'miss' })).toBe(1);
  expect(valueAt(refreshes, { outcome: 'succeeded' })).toBe(1);
  expect(valueAt(refreshes, { outcome: 'failed' })).toBe(0);
});

test('replayed requests are counted', async () => {
  await start();
  const create = (email: string, key: string) =>
    service.call('POST', USERS, { email }, { headers: { 'idempotency-key': key } });
  for (const key of ['one', 'one', 'other', 'one']) await create(`${key}@example.com`, key);
  await create('another@example.com', 'one');

  const [point] = await untilPoints('idempotency.replays', ([replays]) => Number(replays?.value) >= 2);
  expect(point).toMatchObject({ value: 2, unit: '{request}', attributes: {} });
});

test('the age of the keys starts again with each fetch, and grows without one', async () => {
  await start({ SVC_OAUTH_JWKS_REFRESH: '5' });
  const ageIs = (isWanted: (age: number) => boolean) =>
    untilPoints('jwks.age', ([point]) => isWanted(Number(point?.value)));
  const [point] = await ageIs((age) => age > 1);
  service.issuer.answer((_request, response) => void response.writeHead(500).end());
  await ageIs((age) => age > 6);
  service.issuer.answerNormally();
  await ageIs((age) => age < 5);

  expect(point?.unit).toBe('s');
});

test('statements that were sent again are counted by reason', async () => {
  await start();
  await service.database.query(`
    CREATE SEQUENCE tries;
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('tries') <= 2 THEN RAISE EXCEPTION 'a fault' USING ERRCODE = '40P01'; END IF;
      RETURN new;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail()
  `);
  const { status } = await service.call('POST', USERS, { email: 'again@example.com' });
  const points = await untilPoints('statements.retried', (all) => valueAt(all, { reason: 'deadlock' }) === 2);

  expect(status).toBe(201);
  expect(points.map(({ attributes, value }) => [attributes.reason, value]).sort()).toEqual([
    ['connection_lost', 0],
    ['deadlock', 2],
    ['serialization_failure', 0],
  ]);
});

test('the age of the drain is 0 until it begins', async () => {
  await start({ SVC_SHUTDOWN_DRAIN_TIMEOUT: '20' });
  const [before] = await untilPoints('drain.age', () => true);
  const table = await holdUsers(service.database);
  const held = service.call('GET', USERS);
  await untilPoints('http.server.active_requests', ([point]) => point?.value === 1);
  service.signal('SIGTERM');
  const [during] = await untilPoints('drain.age', ([point]) => Number(point?.value) > 0.5);
  await table.release();

  expect((await held).status).toBe(200);
  expect(before).toMatchObject({ value: 0, unit: 's' });
  expect(during?.value).toBeLessThan(20);
});

test('the lines that standard output did not accept are counted as in the log', async () => {
  const pipe = createPipe();
  service = await forThisTest(startTracedService, often, { output: pipe });
  const longLine = `/${'x/'.repeat(5000)}`;
  for (let sent = 0; sent < 200; sent += 1) await fetch(service.url + longLine);
  const [before] = await untilPoints('log.lines.dropped', ([point]) => Number(point?.value) > 0);
  const dropped = await service.untilEvent('log_lines_dropped');
  const [after] = await untilPoints('log.lines.dropped', ([point]) => point?.value === dropped.count);
  pipe.remove();

  expect(before?.value).toBeLessThanOrEqual(Number(after?.value));
});

test('the last metrics are sent before the exit', async () => {
  service = await forThisTest(startTracedService, { OTEL_METRICS_EXPORTER: 'otlp' });
  await service.call('GET', USERS);
  expect(service.receiver.points()).toEqual([]);
  service.signal('SIGTERM');
  await service.exited;

  expect(latest('http.server.request.duration')).toMatchObject([{ value: 1 }]);
});
