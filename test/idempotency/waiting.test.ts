import { describe, expect, test } from 'vitest';
import { isDistributed } from '../stage/distributed.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { freshKey, postingUnderKeys, REPLAYED } from '../stage/keyed.ts';
import { holdEmail, holdUsers, untilUnderWay } from '../stage/locks.ts';
import { isPooled } from '../stage/pooled.ts';
import { BATCH, freshAddress, refusal, success, USERS, user } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { timed, times, until } from '../stage/until.ts';

// The first request under a key waits for an email that an open transaction writes, up to its time limit.
const service = serviceUnderTest(() => ({ SVC_POSTGRES_STATEMENT_TIMEOUT: '15' }));

const post = postingUnderKeys(service.call);

/** A second instance with the same database, this time limit in seconds, and an open connection for writes. */
async function startAnother(seconds: number, variables = {}) {
  const settings = { SVC_POSTGRES_STATEMENT_TIMEOUT: String(seconds), ...variables };
  const { call } = await forThisTest(startService, settings, service);
  const post = postingUnderKeys(call);
  await until('a user is stored', async () => {
    const { status } = await post(USERS, freshKey(), { email: freshAddress() });
    return status === 201;
  });
  return { call, post };
}

/** The first request under a key, in progress in the first instance until it is released. */
async function holdKey(key: string, path: string, email: string, body: unknown) {
  const held = await forThisTest(holdEmail, service.database, email);
  const first = post(path, key, body);
  await untilUnderWay(1, service.database);
  return { first, ...held };
}

describe('while the first request under a key is in progress in another instance,', () => {
  test.each([
    ['the same values', USERS, (email: string) => ({ email }), (email: string) => ({ email })],
    ['other values', USERS, (email: string) => ({ email }), () => ({ email: freshAddress() })],
    [
      'a partial batch',
      BATCH,
      (email: string) => ({ items: [{ email }], mode: 'partial' }),
      () => ({ items: [{ email: freshAddress() }, { email: 'none' }], mode: 'partial' }),
    ],
  ])('a repeated request is 409 at its time limit: %s', async (kind, path, firstBody, otherBody) => {
    const [key, email] = [freshKey(), freshAddress()];
    const { first, release } = await holdKey(key, path, email, firstBody(email));
    const another = await startAnother(0.8);
    const second = await timed(another.post(path, key, otherBody(email)));

    expect(second.value).toEqual(refusal('idempotency_key_in_use_error', path));
    expect(second.milliseconds).toBeGreaterThan(800);
    // PostgreSQL has stopped the refused one. It could get the key if the first one conflicts with it.
    await untilUnderWay(1, service.database);
    await release();
    const { status, headers } = await first;
    expect([status, headers['idempotency-replayed']]).toEqual([
      kind === 'a partial batch' ? 200 : 201,
      undefined,
    ]);
  });

  test('a repeated request waits for it and replays it', async () => {
    const [key, email] = [freshKey(), freshAddress()];
    const { first, release } = await holdKey(key, USERS, email, { email });
    const another = await startAnother(15);
    const responses = [{ email }, { email: freshAddress() }].map((body) => another.post(USERS, key, body));
    // One of the two waits in PostgreSQL.
    await untilUnderWay(2, service.database);
    await release();
    const [same, other] = await Promise.all(responses);
    const { body, headers } = await first;

    const { etag = '', location = '' } = headers;
    expect(body).toEqual(user({ email }));
    expect(same).toEqual(success(201, body, { etag, location, ...REPLAYED }));
    expect(other).toEqual(refusal('idempotency_key_reused_error', USERS));
  });

  test('a repeated request is carried out if the first one fails', async () => {
    const [key, email] = [freshKey(), freshAddress()];
    const { first, commit } = await holdKey(key, USERS, email, { email });
    const free = freshAddress();
    const another = await startAnother(15);
    const second = another.post(USERS, key, { email: free });
    await untilUnderWay(2, service.database);
    await commit();
    const { status, body, headers } = await second;

    expect(await first).toEqual(refusal('conflict_error', USERS));
    expect([status, body]).toEqual([201, user({ email: free })]);
    expect(headers['idempotency-replayed']).toBe(undefined);
  });

  test('twelve repeated requests wait with one connection, and reads are served', async () => {
    const [key, email] = [freshKey(), freshAddress()];
    const { first, release } = await holdKey(key, USERS, email, { email });
    // One session for the key, one for another write, and one that writes leave to reads.
    const another = await startAnother(3, { SVC_POSTGRES_POOL_SIZE: '3' });
    const waiting = times(12, (index) =>
      another.post(USERS, key, index % 2 === 0 ? { email } : { email: freshAddress() }),
    );
    await untilUnderWay(2, service.database);
    const reads = await times(20, () => another.call('GET', USERS));
    expect(reads.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect((await another.post(USERS, freshKey(), { email: freshAddress() })).status).toBe(201);

    expect(await waiting).toEqual(Array(12).fill(refusal('idempotency_key_in_use_error', USERS)));
    await release();
    expect((await first).status).toBe(201);
  });
});

// An engine that reports no reason for a timeout may have waited for the key.
const [statusOfTimeout, timeout] = isDistributed
  ? ([409, 'idempotency_key_in_use_error'] as const)
  : ([503, 'service_unavailable_error'] as const);

describe(`a timeout that the key did not cause is ${statusOfTimeout}, and stores nothing:`, () => {
  test.each([
    ['an email that an open transaction writes', holdEmail] as const,
    // Behind a pooler PostgreSQL has the role's limit, not the request's. A later statement can get the table first.
    ...(isPooled ? [] : [['a table that is locked', holdUsers] as const]),
  ])('%s', async (_case, hold) => {
    const [key, email] = [freshKey(), freshAddress()];
    const another = await startAnother(0.6);
    const { release } = await forThisTest(hold, service.database, email);
    const responses = await times(12, () => another.post(USERS, key, { email }));
    expect(responses).toEqual(Array(12).fill(refusal(timeout, USERS)));
    expect(await another.post(BATCH, key, { items: [{ email }] })).toEqual(refusal(timeout, BATCH));
    await untilUnderWay(0, service.database);
    await release();

    const response = await post(USERS, key, { email });
    expect([response.status, response.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });
});
