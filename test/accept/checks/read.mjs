import { demand, same } from '../expect.mjs';
import { steadily } from '../links.mjs';
import { TAG, user } from '../responses.mjs';

const USERS = '/api/v1/users/';
const UNKNOWN = `${USERS}00000000-0000-0000-0000-000000000000`;

/** Reads of one user, and their conditions. */
export async function read({ check, skip, call, answers, succeeds, refuses }) {
  await check('an unknown id is 404', async () => refuses(await call('GET', UNKNOWN), 'not_found_error'));
  await check('an id that is not a UUID is 422', async () => {
    for (const id of ['1', 'no-id', '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f7g', '%20'])
      refuses(await call('GET', USERS + id), 'validation_error', { errors: ['user_id'] });
  });
  await check('the path of a problem has no query', async () =>
    refuses(await call('GET', `${UNKNOWN}?token=secret`), 'not_found_error'),
  );

  const { body: page } = await call('GET', `${USERS}?limit=1`).catch(() => ({}));
  const known = Array.isArray(page) ? page[0] : undefined;
  if (!known) return skip('reads of a user', 'there are no users');
  const path = USERS + known.id;
  const tagged = { etag: TAG };

  await check('a user is the same as in the list, and has its version as `ETag`', async () =>
    steadily(async () => {
      const [listed] = (await call('GET', `${USERS}?ids=${known.id}`)).body;
      succeeds(await call('GET', path), 200, user(listed), tagged);
    }),
  );
  await check('the id can be in upper case, and the path can have a trailing slash', async () => {
    for (const other of [USERS + known.id.toUpperCase(), `${path}/`])
      succeeds(await call('GET', other), 200, user({ id: known.id }), tagged);
  });
  await check('HEAD is the same without a body', async () => {
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
      ...tagged,
    };
    answers(await call('HEAD', path), { status: 200, headers });
  });
  await check('`If-None-Match` with the current version is 304, without a body', async () =>
    steadily(async () => {
      const { etag } = (await call('GET', path)).headers;
      for (const value of [etag, `W/${etag}`, `"x", ${etag}`, '*'])
        for (const method of ['GET', 'HEAD'])
          succeeds(await call(method, path, { headers: { 'if-none-match': value } }), 304, '', { etag });
      const other = await call('GET', path, { headers: { 'if-none-match': '"0"' } });
      same(other.status, 200, 'the status for another version');
    }),
  );
  await check('`If-Match` with another version is 412', async () =>
    steadily(async () => {
      const { etag } = (await call('GET', path)).headers;
      for (const value of ['"0"', `W/${etag}`, 'x'])
        refuses(await call('GET', path, { headers: { 'if-match': value } }), 'precondition_failed_error');
      for (const value of [etag, '*'])
        succeeds(await call('GET', path, { headers: { 'if-match': value } }), 200, user({ id: known.id }), {
          etag,
        });
    }),
  );
  await check('an unknown id is 404 before any condition', async () => {
    const answer = await call('GET', UNKNOWN, { headers: { 'if-match': '"1"' } });
    demand(answer.status === 404, `the status is ${answer.status}`);
  });
}
