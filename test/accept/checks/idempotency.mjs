import { randomUUID } from 'node:crypto';
import { same } from '../expect.mjs';
import { user } from '../responses.mjs';

const USERS = '/api/v1/users/';

/** A create that is repeated under its key is carried out once. */
export async function idempotency({ check, call, post, patch, remove, ledger, succeeds, refuses }) {
  const keyed = (json, key) => post(json, { headers: { 'idempotency-key': key } });

  await check(
    'a repeated request returns the same user in its current state, marked as a replay',
    async () => {
      const [email, key] = [ledger.address(), randomUUID()];
      const first = await keyed({ email }, key);
      const location = USERS + first.body.id;
      succeeds(first, 201, user({ email }), { location, etag: '"1"', 'idempotency-replayed': undefined });
      const changed = await patch(first.body.id, { full_name: 'Changed' });
      const replayed = { location, etag: '"2"', 'idempotency-replayed': 'true' };
      for (const again of [key, `"${key}"`])
        succeeds(await keyed({ email, full_name: null }, again), 201, changed.body, replayed);
      const { body } = await call('GET', `${USERS}?email=${encodeURIComponent(email)}`);
      same(body.length, 1, 'the number of users');
    },
  );
  await check('another request under the same key is 422', async () => {
    const [email, key] = [ledger.address(), randomUUID()];
    await keyed({ email }, key);
    for (const other of [{ email, full_name: 'x' }, { email: ledger.address() }])
      refuses(await keyed(other, key), 'idempotency_key_reused_error');
  });
  await check('a replay for a user that has since been deleted is 410', async () => {
    const [email, key] = [ledger.address(), randomUUID()];
    const { body } = await keyed({ email }, key);
    await remove(body.id);
    refuses(await keyed({ email }, key), 'gone_error');
  });
  await check('a refused request leaves nothing under its key', async () => {
    const [email, key] = [ledger.address(), randomUUID()];
    const { body } = await post({ email });
    refuses(await keyed({ email }, key), 'conflict_error');
    await remove(body.id);
    succeeds(await keyed({ email }, key), 201, user({ email }), { 'idempotency-replayed': undefined });
  });
  await check('an invalid key is 422', async () => {
    const errors = ['Idempotency-Key'];
    for (const key of ['one two', 'x'.repeat(256), '"open', 'a,b', '""'])
      refuses(await keyed({ email: ledger.address() }, key), 'validation_error', { errors });
  });
  await check('eight requests with one key at once create one user, and all return it', async () => {
    const [email, key] = [ledger.address(), randomUUID()];
    const answers = await Promise.all(Array.from({ length: 8 }, () => keyed({ email }, key)));
    same(
      answers.map(({ status }) => status),
      Array(8).fill(201),
      'the statuses',
    );
    same(new Set(answers.map(({ body }) => body.id)).size, 1, 'the number of users');
  });
}
