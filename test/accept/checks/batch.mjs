import { randomUUID } from 'node:crypto';
import { anything, same } from '../expect.mjs';
import { user } from '../responses.mjs';

const USERS = '/api/v1/users/';

/** Many users in one request. */
export async function batch({ check, call, newUser, ledger, succeeds, refuses }) {
  const send = (items, mode, headers = {}) =>
    call('POST', `${USERS}batch`, { json: { items, ...(mode && { mode }) }, headers });
  const countOf = async (email) =>
    (await call('GET', `${USERS}?email=${encodeURIComponent(email)}`)).body.length;
  const items = (count) => Array.from({ length: count }, () => ({ email: ledger.address() }));

  await check('an atomic batch returns the users in the order of its items', async () => {
    const given = [...items(2), { email: ledger.address(), full_name: 'Third' }];
    const answer = await send(given);
    succeeds(answer, 201, given.map(user), { location: undefined, etag: undefined });
    for (const { email } of given) same(await countOf(email), 1, `the users with ${email}`);
  });
  await check('a batch with a refused item stores nothing, and names every refused item', async () => {
    const [fresh, other] = items(2);
    const taken = await newUser();
    const conflict = [fresh, { email: taken.email.toUpperCase() }];
    refuses(await send(conflict, 'atomic'), 'conflict_error', { errors: ['#/items/1/email'] });
    const wrong = [other, { email: 'x' }, { email: ledger.address(), full_name: 7 }];
    const errors = ['#/items/1/email', '#/items/2/full_name'];
    refuses(await send(wrong), 'validation_error', { errors });
    const repeated = [other, { email: other.email.toUpperCase() }];
    refuses(await send(repeated), 'validation_error', { errors: ['#/items/1/email'] });
    for (const { email } of [fresh, other]) same(await countOf(email), 0, `the users with ${email}`);
  });
  await check('a partial batch stores the valid items, and has a result for each item', async () => {
    const [fresh, late] = items(2);
    const taken = await newUser();
    const given = [fresh, { email: taken.email }, { email: 'x' }, { email: fresh.email }, late];
    const refused = (status, code) => ({
      status,
      problem: anything(
        `‹the problem ${code}›`,
        (problem) =>
          problem?.type === `urn:svc:error:${code}` && problem.status === status && problem.detail !== '',
      ),
    });
    succeeds(await send(given, 'partial'), 200, [
      { status: 201, user: user(fresh) },
      refused(409, 'conflict_error'),
      refused(422, 'validation_error'),
      refused(409, 'conflict_error'),
      { status: 201, user: user(late) },
    ]);
    for (const { email } of [fresh, late]) same(await countOf(email), 1, `the users with ${email}`);
  });
  await check('a body with no items, too many items, or another mode is 422', async () => {
    for (const [given, mode, error] of [
      [[], 'atomic', '#/items'],
      [Array.from({ length: 101 }, () => ({ email: 'x' })), 'partial', '#/items'],
      [items(1), 'some', '#/mode'],
    ])
      refuses(await send(given, mode), 'validation_error', { errors: [error] });
  });
  await check('a batch that is repeated under its key is carried out once', async () => {
    const [given, key] = [items(2), { 'idempotency-key': randomUUID() }];
    const first = await send(given, 'atomic', key);
    succeeds(first, 201, given.map(user), { 'idempotency-replayed': undefined });
    succeeds(await send(given, 'atomic', key), 201, first.body, { 'idempotency-replayed': 'true' });
  });
}
