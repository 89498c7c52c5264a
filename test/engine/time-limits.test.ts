import { expect, test } from 'vitest';
import { getUser } from '../../handlers/users/get.ts';
import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { unavailable } from '../../lib/http/problem.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, untilUnderWay } from '../stage/locks.ts';
import { refusal, responseFromResult } from '../stage/responses.ts';
import { BUSY_S, timed } from '../stage/until.ts';

const INSTANCE = '/api/v1/users/0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';

/** A service with a locked table of users, and a request that waits for it. */
async function startLocked(variables: Variables) {
  const stage = await forThisTest(startComposition, variables);
  // Opens the connection, so that no request of the test waits for that.
  await stage.createUser();
  await forThisTest(holdUsers, stage.database);
  const event = await eventOf('getUser', { token: await stage.issuer.sign() });
  const handler = getUser.bind(stage.service);
  const read = async (invocation = {}) => responseFromResult(await handler(event, invocation));
  return { stage, read };
}

test('a request waits at most SVC_POSTGRES_STATEMENT_TIMEOUT for a statement and SVC_POSTGRES_POOL_TIMEOUT for a connection', async () => {
  const { stage, read } = await startLocked({
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_POSTGRES_POOL_TIMEOUT: '0.3',
    SVC_POSTGRES_STATEMENT_TIMEOUT: '1.5',
  });
  const ended = await Promise.all([timed(read()), timed(read())]);
  const [quick, slow] = ended.map(({ milliseconds }) => milliseconds).toSorted((one, other) => one - other);

  expect(ended.map(({ value }) => value)).toEqual(
    Array(2).fill(refusal('service_unavailable_error', INSTANCE)),
  );
  const errors = stage.lines.filter(({ event }) => event === 'app_error');
  expect(errors.map(({ message }) => message)).toEqual([
    'no connection became free in time',
    // PostgreSQL has 250 ms to say that it cancelled the statement.
    expect.stringMatching(/57014|PostgreSQL cannot answer/),
  ]);
  expect(quick).toBeGreaterThan(250);
  expect(slow).toBeGreaterThan(1400);
  expect(slow).toBeLessThan(3500 + 1000 * BUSY_S);
});

test("the wait for a connection is part of the request's time limit, with any SVC_POSTGRES_POOL_TIMEOUT", async () => {
  const { stage, read } = await startLocked({
    SVC_POSTGRES_POOL_SIZE: '1',
    SVC_POSTGRES_POOL_TIMEOUT: '60',
    SVC_POSTGRES_STATEMENT_TIMEOUT: '0.5',
  });
  const start = performance.now();
  const responses = await Promise.all([read(), read(), read()]);

  expect(responses).toEqual(responses.map(() => refusal('service_unavailable_error', INSTANCE)));
  const reasons = stage.lines.map(({ message }) => message);
  expect(reasons).toContainEqual(expect.stringContaining("the request's time limit is reached"));
  // Far from the minute that each could wait for a connection.
  expect(performance.now() - start).toBeLessThan(10_000);
});

test('a request, with its statement in PostgreSQL, ends before the time limit of the invocation', async () => {
  const { stage, read } = await startLocked({ SVC_POSTGRES_STATEMENT_TIMEOUT: '600' });
  const begun = performance.now();
  const left = () => 1500 - (performance.now() - begun);
  const [response] = await Promise.all([
    read({ getRemainingTimeInMillis: left }),
    untilUnderWay(1, stage.database),
  ]);

  expect(response).toEqual(refusal('service_unavailable_error', INSTANCE));
  // The limit of the statement would be ten minutes.
  await untilUnderWay(0, stage.database);
});

test('a request whose key is late ends before the time limit of the invocation, and is not served afterwards', async () => {
  const stage = await forThisTest(startComposition);
  const { issuer, service } = stage;
  const keysAreSent = Promise.withResolvers<void>();
  issuer.answer(async (_request, response) => {
    await keysAreSent.promise;
    response.end(JSON.stringify({ keys: issuer.keys.map(({ publicJwk }) => publicJwk) }));
  });
  let served = 0;
  const counted = endpoint(getUser.route, () => {
    served += 1;
    throw unavailable('only counted');
  });
  const event = await eventOf('getUser', { token: await issuer.sign() });
  const begun = performance.now();
  const getRemainingTimeInMillis = () => 500 - (performance.now() - begun);
  const result = await counted.bind(service)(event, { getRemainingTimeInMillis });

  expect(responseFromResult(result)).toEqual(refusal('service_unavailable_error', INSTANCE));
  expect(stage.lines.map(({ message }) => message)).toEqual(['the invocation has run out of time']);
  keysAreSent.resolve();
  await stage.createUser();
  expect(served).toBe(0);
  await counted.bind(service)({ ...event });
  expect(served).toBe(1);
});

test('a request after the connections were closed is 503', async () => {
  const stage = await forThisTest(startComposition);
  await stage.service.database.close(1);
  const event = await eventOf('getUser', { token: await stage.issuer.sign() });
  const response = responseFromResult(await getUser.bind(stage.service)(event));

  expect(response).toEqual(refusal('service_unavailable_error', INSTANCE));
  expect(stage.lines.map(({ event: name, message }) => ({ name, message }))).toEqual([
    { name: 'app_error', message: 'the connections are closed because the service is shutting down' },
  ]);
});
