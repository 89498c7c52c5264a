import { beforeAll, describe, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { freshKey } from '../stage/keyed.ts';
import { holdEmail, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { BATCH, freshAddress, refusal, success, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest(() => PATIENT);
const admin = administratorOf(service);

type Mode = 'atomic' | 'partial';
type Result = { readonly status: number };

const keys = [
  ['without a key', () => ({})],
  ['under a key', () => ({ headers: { 'idempotency-key': freshKey() } })],
] as const;

describe.each(keys)('a batch %s with an email that another transaction is writing', (_way, init) => {
  const batch = (emails: readonly string[], mode: Mode) =>
    service.call('POST', BATCH, { items: emails.map((email) => ({ email })), mode }, init());

  /** The response to a batch whose second email is written by a transaction, when that has come to its `end`. */
  async function meanwhile(mode: Mode, end: 'commit' | 'release') {
    const emails = [freshAddress(), freshAddress(), freshAddress()] as const;
    const writing = await holdEmail(service.database, emails[1]);
    const response = batch(emails, mode);
    await untilUnderWay(1, service.database);
    await writing[end]();
    return { emails, response: await response };
  }

  test('is 409 in atomic mode after the other commits, and nothing is stored', async () => {
    const { emails, response } = await meanwhile('atomic', 'commit');

    expect(response).toEqual(refusal('conflict_error', BATCH, { errors: ['#/items/1/email'] }));
    expect((await batch([emails[0], emails[2]], 'atomic')).status).toBe(201);
  });

  test('stores the other items in partial mode after the other commits', async () => {
    const { emails, response } = await meanwhile('partial', 'commit');
    const { body: problem } = refusal('conflict_error', BATCH, { errors: ['#/items/1/email'] });

    expect(response).toEqual(
      success(200, [
        { status: 201, user: user({ email: emails[0] }) },
        { status: 409, problem },
        { status: 201, user: user({ email: emails[2] }) },
      ]),
    );
  });

  test('stores all items after the other rolls back', async () => {
    const atomic = await meanwhile('atomic', 'release');
    const partial = await meanwhile('partial', 'release');

    const users = atomic.emails.map((email) => user({ email }));
    const results = partial.emails.map((email) => ({ status: 201, user: user({ email }) }));

    expect(atomic.response).toEqual(success(201, users));
    expect(partial.response).toEqual(success(200, results));
  });
});

describe.each(keys)('concurrent batches %s of the same emails in any order', (_way, init) => {
  // PostgreSQL would break a deadlock only after the request's time limit, and the response would be 503.
  beforeAll(async () => {
    await admin.setForSessions('deadlock_timeout', '60s');
  });

  test.each<Mode>(['atomic', 'partial'])('never wait for each other: %s', async (mode) => {
    const local = Array.from({ length: 50 }, () => freshAddress());
    const emails = local.map((email, index) => (index % 2 === 0 ? email : `\u00e9${email.toUpperCase()}`));
    const orders = [emails, emails.toReversed(), emails.toSorted(), emails.toSorted().toReversed()];
    const held = await holdEmail(service.database, emails[25] ?? '');
    const responses = orders.map((order) =>
      service.call('POST', BATCH, { items: order.map((email) => ({ email })), mode }, init()),
    );
    await untilUnderWay(orders.length, service.database);
    await held.release();
    const outcomes = await Promise.all(responses);

    if (mode === 'atomic') {
      expect(outcomes.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
    } else {
      expect(outcomes.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const results = outcomes.flatMap(({ body }) => body as Result[]);
      expect(results.filter(({ status }) => status === 201)).toHaveLength(emails.length);
      expect(results.filter(({ status }) => status === 409)).toHaveLength(3 * emails.length);
    }
  });

  test('and concurrent creates of one user store every email once', async () => {
    const emails = Array.from({ length: 60 }, () => freshAddress());
    const batches = [emails, emails.toReversed()].map((order) =>
      service.call('POST', BATCH, { items: order.map((email) => ({ email })), mode: 'partial' }, init()),
    );
    const creates = emails.map((email) => service.call('POST', '/api/v1/users/', { email }));
    const single = await Promise.all(creates);
    const partial = (await Promise.all(batches)).flatMap(({ body }) => body as Result[]);

    expect([...single, ...partial].filter(({ status }) => status === 201)).toHaveLength(emails.length);
    expect([...single, ...partial].filter(({ status }) => status === 409)).toHaveLength(2 * emails.length);
  });
});
