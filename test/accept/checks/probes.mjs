import { randomUUID } from 'node:crypto';
import { anything, demand } from '../expect.mjs';

const NO_STORE = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };

/** /health, /ready, the request ID, and responses that need no token. */
export async function probes({ check, call, answers, refuses, requestIdHeader }) {
  for (const [path, status] of [
    ['/health', 'healthy'],
    ['/ready', 'ready'],
  ]) {
    await check(`GET ${path} is 200 with the status ${status}`, async () =>
      answers(await call('GET', path), { status: 200, headers: NO_STORE, body: { status } }),
    );
    await check(`HEAD ${path} is the same without a body`, async () =>
      answers(await call('HEAD', path), { status: 200, headers: NO_STORE }),
    );
    await check(`${path} is the same with a trailing slash and with a query`, async () =>
      answers(await call('GET', `${path}/?verbose=1`), { status: 200, headers: NO_STORE, body: { status } }),
    );
    await check(`OPTIONS of ${path} lists its methods`, async () =>
      answers(await call('OPTIONS', path), {
        status: 204,
        headers: { allow: methods('GET', 'HEAD', 'OPTIONS') },
      }),
    );
  }

  await check('the request ID of a request is returned', async () => {
    for (const id of [randomUUID(), 'x', '~'.repeat(128)]) {
      const answer = await call('GET', '/health', { headers: { [requestIdHeader]: id } });
      answers(answer, { status: 200, headers: NO_STORE, body: { status: 'healthy' } });
    }
  });
  await check('a request ID that is too long or contains a space is replaced by a UUID', async () => {
    for (const id of ['x'.repeat(129), 'one two']) {
      const answer = await call('GET', '/health', { headers: { [requestIdHeader]: id } });
      answers(
        { ...answer, sentId: undefined },
        { status: 200, headers: NO_STORE, body: { status: 'healthy' } },
      );
    }
  });
  await check('every request has an ID of its own', async () => {
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => (await call('GET', '/health')).headers),
    );
    demand(new Set(ids.map((headers) => headers[requestIdHeader])).size === 5, 'request IDs were repeated');
  });
  await check('refusals have the request ID of the request', async () => {
    const headers = { [requestIdHeader]: randomUUID() };
    refuses(await call('GET', '/nowhere', { headers }), 'not_found_error');
    refuses(await call('GET', '/api/v1/users/', { headers }), 'unauthorized_error');
  });

  await check('an unknown path is 404, inside and outside of the prefix of the API', async () => {
    for (const path of ['/nowhere', '/api', '/api/v1/', '/api/v1/nowhere', '/health/nowhere'])
      refuses(await call('GET', `${path}?secret=1`), 'not_found_error');
  });
  await check('another method on a known path is 405, and `Allow` lists the supported methods', async () => {
    const allow = methods('POST', 'OPTIONS');
    refuses(await call('GET', '/api/v1/users/batch'), 'method_not_allowed_error', { headers: { allow } });
  });
}

/** The value of `Allow`, in any order. */
export function methods(...names) {
  const expected = [...names].sort();
  return anything(names.join(', '), (value) => {
    const found = (value ?? '').split(',').map((name) => name.trim());
    return JSON.stringify(found.sort()) === JSON.stringify(expected);
  });
}

const PAGES = ['/docs', '/redoc', '/openapi.json'];

/** Either all documentation pages exist, or none, as in production. */
export async function documentation({ check, call, refuses }) {
  await check('either all documentation pages are served, or none (production)', async () => {
    const answers = await Promise.all(PAGES.map((path) => call('GET', path)));
    if (answers[0].status !== 200) {
      for (const answer of answers) refuses(answer, 'not_found_error');
      return;
    }
    for (const { request, status, headers, body } of answers) {
      const isPage = /^text\/html/.test(headers['content-type'] ?? '');
      const isDocument = String(body?.openapi).startsWith('3.');
      demand(status === 200 && (isPage || isDocument), `${request} is ${status} ${headers['content-type']}`);
    }
  });
}
