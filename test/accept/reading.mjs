import { generateKeyPairSync, sign } from 'node:crypto';
import { CHANGES, demand, same, steadily, UNKNOWN, USERS } from './deployment.mjs';
import { claimsOf } from './token.mjs';

const ACCEPT_PATCH = 'application/json, application/merge-patch+json';
const READS = [USERS, UNKNOWN, CHANGES, `${UNKNOWN}/changes`];
const WRITES = [
  ['POST', USERS],
  ['POST', `${USERS}batch`],
  ['PATCH', UNKNOWN],
  ['DELETE', UNKNOWN],
];

/** /health, /ready, the request ID, and responses that need no token. */
export async function probes({ check, ask, send }) {
  for (const [path, status] of [
    ['/health', 'healthy'],
    ['/ready', 'ready'],
  ])
    await check(`${path} is 200 with the status ${status}, also with HEAD, a slash and a query`, async () => {
      await ask('GET', path, 200);
      await ask('HEAD', path, 200);
      await ask('GET', `${path}/?verbose=1`, 200, { is: { status } });
      await ask('OPTIONS', path, 204);
    });
  await check('the request ID is returned, and one that is not allowed is replaced', async () => {
    for (const id of ['x', undefined]) await ask('GET', '/health', 200, { id: id ?? null });
    const { headers } = await send('GET', '/health', { id: 'one two' });
    demand(!Object.values(headers).includes('one two'), 'the request ID one two is returned');
  });
  await check('an unknown path is 404, inside and outside of the prefix of the API', async () => {
    for (const path of ['/nowhere', '/api/v1/nowhere'])
      await ask('GET', `${path}?secret=1`, 'not_found_error');
  });
  await check('another method on a known path is 405', () =>
    ask('GET', `${USERS}batch`, 'method_not_allowed_error', { has: { allow: 'POST, OPTIONS' } }),
  );
}

/** Requests without a token: 401, before any value is checked, except for OPTIONS. */
export async function unauthenticated({ check, ask, profile }) {
  const refused = 'unauthorized_error';
  await check('every read without a token is 401, whatever its values', async () => {
    for (const path of [...READS, `${USERS}?limit=none`, `${USERS}no-id`])
      for (const method of ['GET', 'HEAD']) await ask(method, path, refused, { token: null });
  });
  if (profile === 'full')
    await check('every write without a token is 401, and its body is not checked', async () => {
      for (const [method, path] of WRITES)
        await ask(method, path, refused, { token: null, body: '{"email":' });
    });
  await check('OPTIONS lists the methods of the users, and the media types of PATCH', async () => {
    await ask('OPTIONS', USERS, 204, { has: { allow: 'POST, GET, HEAD, OPTIONS' } });
    await ask('OPTIONS', UNKNOWN, 204, { has: { 'accept-patch': ACCEPT_PATCH } });
  });
}

/** Any text other than a token of the identity provider is 401. */
export async function tokens({ check, skip, ask, token }) {
  const LIST = `${USERS}?limit=1`;
  const withHeader = (authorization, expected) =>
    ask('GET', LIST, expected, { token: null, headers: { authorization } });
  await check('another scheme, text around the token, and a text that is not a token are 401', async () => {
    const texts = ['x', `${token}.`, token.slice(0, -10), `${token}, Bearer ${token}`];
    for (const value of [`Basic ${token}`, 'Bearer', token, ...texts.map((text) => `Bearer ${text}`)])
      await withHeader(value, 'unauthorized_error');
  });
  await check('the scheme may be written in any case', () => withHeader(`BEARER ${token}`, 200));
  await check('a token in the query is ignored', () =>
    ask('GET', `${LIST}&access_token=${token}`, 'unauthorized_error', { token: null }),
  );
  if (!claimsOf(token)) return skip('forged tokens are 401', 'the token is not a JWT');
  for (const [title, forged] of forgeries(token))
    await check(`${title} is 401`, () => withHeader(`Bearer ${forged}`, 'unauthorized_error'));
}

/** The real token, changed in parts that its signature does not cover, or that the signature of another key covers. */
function forgeries(token) {
  const [head, payload, signature] = token.split('.');
  const header = JSON.parse(Buffer.from(head, 'base64url').toString());
  const claims = claimsOf(token);
  const middle = Math.floor(signature.length / 2);
  const flipped = signature[middle] === 'A' ? 'B' : 'A';
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signed = `${encoded({ ...header, alg: 'RS256' })}.${payload}`;
  const byStranger = sign('sha256', Buffer.from(signed), stranger.privateKey).toString('base64url');
  const otherSignature = signature.slice(0, middle) + flipped + signature.slice(middle + 1);
  return [
    ['a token with another signature', `${head}.${payload}.${otherSignature}`],
    ['a token with other claims', `${head}.${encoded({ ...claims, sub: 'another-client' })}.${signature}`],
    ['a token that says it needs no signature', `${encoded({ ...header, alg: 'none' })}.${payload}.`],
    ["a token signed by a stranger under the provider's key ID", `${signed}.${byStranger}`],
  ];
}

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token with one role has no other right, and is refused before its values are checked. */
export async function roles({ check, skip, ask, source, profile, deleteRole }) {
  async function checkWith(role, title, holds) {
    const token = await source.narrowed(role);
    if (!token) return skip(title, 'the provider gives no such token');
    await check(title, () => holds(token));
  }
  await checkWith('users.write', 'a token with users.write alone may not read (403)', async (token) => {
    for (const path of READS) await ask('GET', path, 'forbidden_error', { token });
  });
  if (profile !== 'full') return;
  await checkWith('users.read', 'a token with users.read alone may not write (403)', async (token) => {
    for (const [method, path] of WRITES) await ask(method, path, 'forbidden_error', { token, json: {} });
  });
  if (deleteRole !== 'users.delete') return;
  await checkWith('users.write', 'a token with users.write alone may not delete (403)', (token) =>
    ask('DELETE', UNKNOWN, 'forbidden_error', { token }),
  );
}

/** Values of queries that are refused, and the parameters that `errors` names. */
const REFUSED = [
  [USERS, 'skip=0x1&limit=1001', 'skip', 'limit'],
  [USERS, 'limit=1&limit=2', 'limit'],
  [USERS, 'email=ada%20@example.com&is_active=yes&ids=1&sort=email', 'email', 'ids', 'is_active', 'sort'],
  [USERS, 'created_after=yesterday&created_before=2026-02-30T00:00:00Z', 'created_after', 'created_before'],
  [USERS, 'cursor=made-up', 'cursor'],
  [CHANGES, 'cursor=made-up&exclude_actor=', 'cursor', 'exclude_actor'],
];

const ids = (page) => page.map(({ id }) => id);
const swapped = (text) =>
  text.replace(/[a-z]/gi, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()));

/** Pages, order, filters, and refused values. */
export async function list({ check, skip, ask }) {
  const listed = async (query) => (await ask('GET', USERS + query, 200)).body;
  await check('the list has 100 users at most, oldest first, and a trailing slash makes no difference', () =>
    steadily(async () => {
      const page = await listed('');
      demand(page.length <= 100, `${page.length} users without a limit`);
      const ordered = page.toSorted((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1));
      same(ids(page), ids(ordered), 'the order');
      same((await ask('GET', '/api/v1/users', 200)).body, page, 'the list without a slash');
      await ask('HEAD', USERS, 200);
    }),
  );
  await check('refused values are 422, and `errors` lists all of them', async () => {
    for (const [path, query, ...errors] of REFUSED)
      await ask('GET', `${path}?${query}`, 'validation_error', { errors });
  });

  const [known, other] = (await listed('?limit=2').catch(() => [])) ?? [];
  if (!known) return skip('pages, order and filters', 'there are no users');
  await check('filters: email in any case, ids, is_active, created_after and created_before', () =>
    steadily(async () => {
      const { id, email, is_active, created_at } = known;
      const address = encodeURIComponent(email);
      const [before, after] = [-1, 1].map((step) => new Date(Date.parse(created_at) + step).toISOString());
      for (const [query, expected] of [
        [`email=${address}`, [id]],
        [`email=${encodeURIComponent(swapped(email))}`, [id]],
        [`ids=${id},00000000-0000-0000-0000-000000000000,${id}`, [id]],
        [`ids=${id}&is_active=${!is_active}`, []],
        [`ids=${id}&created_after=${created_at}`, []],
        [`ids=${id}&created_after=${before}&created_before=${after}`, [id]],
      ])
        same(ids(await listed(`?${query}`)), expected, `the list by ${query}`);
    }),
  );

  if (!other) return skip('pages by link', 'there are fewer than two users');
  await check('a walk by links equals the list, in both orders, by cursor and by skip', async () => {
    for (const start of ['', '&skip=1', '&sort=-created_at', '&is_active=true'])
      await steadily(async () => {
        const seen = [];
        let target = `${USERS}?limit=1${start}`;
        for (let pages = 0; target && pages < 4; pages += 1) {
          const { body, next } = await ask('GET', target, 200);
          seen.push(...body);
          target = next;
        }
        const whole = await listed(`?limit=${seen.length + 1}${start}`);
        same(ids(seen), ids(whole).slice(0, seen.length), `the walk from ${start}`);
        same(whole.length > seen.length, target !== undefined, 'whether there is a link to a next page');
        if (start === '&skip=1') same(seen[0].id, other.id, 'the first one');
        if (start === '&sort=-created_at')
          demand(seen[0].created_at >= known.created_at, 'the newest is older than the oldest');
      });
  });
}

/** Reads of one user, and their conditions. */
export async function read({ check, skip, ask, send }) {
  await check('an unknown id is 404 before any condition, and an id that is not a UUID is 422', async () => {
    await ask('GET', `${UNKNOWN}?token=secret`, 'not_found_error', { headers: { 'if-match': '"1"' } });
    await ask('GET', `${USERS}no-id`, 'validation_error', { errors: ['user_id'] });
  });
  const { body: page } = await send('GET', `${USERS}?limit=1`).catch(() => ({}));
  const known = Array.isArray(page) ? page[0] : undefined;
  if (!known) return skip('reads of a user', 'there are no users');
  const path = USERS + known.id;
  await check('a user is the same as in the list, with its id in any case, with a slash, and with HEAD', () =>
    steadily(async () => {
      const [is] = (await ask('GET', `${USERS}?ids=${known.id}`, 200)).body;
      for (const target of [path, USERS + known.id.toUpperCase(), `${path}/`])
        await ask('GET', target, 200, { is });
      await ask('HEAD', path, 200);
    }),
  );
  await check('`If-None-Match` with the current version is 304, `If-Match` with another one is 412', () =>
    steadily(async () => {
      const { etag } = (await ask('GET', path, 200)).headers;
      for (const [name, value, expected] of [
        ['if-none-match', etag, 304],
        ['if-none-match', `W/${etag}`, 304],
        ['if-none-match', '"0"', 200],
        ['if-match', etag, 200],
        ['if-match', '"0"', 'precondition_failed_error'],
        ['if-match', `W/${etag}`, 'precondition_failed_error'],
      ])
        await ask('GET', path, expected, { headers: { [name]: value }, has: expected < 400 ? { etag } : {} });
      await ask('HEAD', path, 304, { headers: { 'if-none-match': etag }, has: { etag } });
    }),
  );
}

/** The feed, read from its current position. */
export async function changes({ check, skip, ask, send }) {
  await check('`cursor=now&limit=0` is the head of the feed', async () => {
    const { next } = await ask('GET', `${CHANGES}?cursor=now&limit=0`, 200, { is: [] });
    demand(!/[?&]limit=0(&|$)/.test(next), 'the link asks for nothing');
    await ask('GET', next, 200);
  });
  await check('the oldest changes come first and in order, and the link leads to the next ones', async () => {
    const headers = { accept: 'application/cloudevents-batch+json' };
    const first = await ask('GET', `${CHANGES}?limit=2`, 200, { headers });
    same(first.headers['content-type'].split(';')[0], headers.accept, 'the type');
    const second = await ask('GET', first.next, 200);
    const positions = [...first.body, ...second.body].map(({ id }) => Number.parseInt(id, 10));
    const rises = positions.every((position, index) => index === 0 || position > positions[index - 1]);
    demand(rises, 'the second page does not follow the first');
  });
  const { body: page } = await send('GET', `${CHANGES}?limit=1`).catch(() => ({}));
  const known = Array.isArray(page) ? page[0] : undefined;
  if (!known) return skip('the changes of one user', 'there are no changes');
  await check('the changes of one user contain no other user', async () => {
    const { body } = await ask('GET', `${USERS}${known.subject}/changes?limit=20`, 200);
    same([...new Set(body.map(({ subject }) => subject))], [known.subject], 'the users');
  });
}
