import type { RawRequest, RawResponse } from '../stage/raw-request.ts';

/** What a proxy in front of a correct deployment changes. */
export type Breaking = {
  readonly onRequest?: (request: RawRequest) => RawRequest;
  readonly onResponse?: (
    answer: RawResponse,
    request: RawRequest,
  ) => RawResponse | 'reset' | Promise<RawResponse | 'reset'>;
};

/** Faults of a deployment by their titles. */
type Faults = Readonly<Record<string, Breaking>>;

type Where = (answer: RawResponse, request: RawRequest) => boolean;
type OnResponse = NonNullable<Breaking['onResponse']>;

const always: Where = () => true;
const status = (wanted: number) => (answer: RawResponse) => answer.status === wanted;
const ok: Where = ({ status }) => status < 300;
const refused: Where = ({ status }) => status >= 400;
const method = (wanted: string) => (_: RawResponse, request: RawRequest) => request.method === wanted;
const path = (pattern: RegExp) => (_: RawResponse, request: RawRequest) => pattern.test(request.target);
const both = (one: Where, other: Where) => (answer: RawResponse, request: RawRequest) =>
  one(answer, request) && other(answer, request);

/** The Content-Length is that of the body, if the response has one. */
const changed = (
  where: Where,
  change: (answer: RawResponse, request: RawRequest) => Partial<RawResponse>,
): Pick<Breaking, 'onResponse'> => ({
  onResponse: (answer, request) => {
    if (!where(answer, request)) return answer;
    const { headers, ...other } = { ...answer, ...change(answer, request) };
    const length = headers['content-length'] && other.body !== '' && Buffer.byteLength(other.body);
    return { ...other, headers: length ? { ...headers, 'content-length': String(length) } : headers };
  },
});

/** Another value of a header, or none. A function gets the value, if the response has one. */
const withHeader = (where: Where, name: string, value?: string | ((value: string) => string)) =>
  changed(where, ({ headers: { [name]: before, ...others } }) => {
    const after = typeof value === 'function' ? before && value(before) : value;
    return { headers: after === undefined ? others : { ...others, [name]: after } };
  });
const withStatus = (where: Where, other: number) => changed(where, () => ({ status: other }));
const withStatuses = (others: Readonly<Record<number, number>>): Faults =>
  Object.fromEntries(
    Object.entries(others).map(([one, other]) => [`${one} is ${other}`, withStatus(status(+one), other)]),
  );

// biome-ignore lint/suspicious/noExplicitAny: the body can have any shape
type Body = any;
const withBody = (where: Where, change: (body: Body, request: RawRequest) => Body) =>
  changed(where, ({ headers, body }, request) =>
    headers['content-type']?.includes('json') && body !== ''
      ? { body: JSON.stringify(change(JSON.parse(body), request)) }
      : {},
  );
/** Other members of an object: a constant, or made of the object. A member that is undefined is left out. */
type Members = object | ((value: Body, request: RawRequest) => object);
const replaced = (value: Body, members: Members, request: RawRequest) => ({
  ...value,
  ...(typeof members === 'function' ? members(value, request) : members),
});
const withMembers = (where: Where, members: Members) =>
  withBody(where, (body, request) => replaced(body, members, request));
const withUsers = (members: Members, where = ok) =>
  withBody(where, (body, request) => {
    const changedUser = (one: Body) => (one.email ? replaced(one, members, request) : one);
    return Array.isArray(body) ? body.map(changedUser) : changedUser(body);
  });
const withProblems = (members: Members) =>
  withMembers(({ headers }) => headers['content-type'] === 'application/problem+json', members);
const withList = (where: Where, change: (items: Body[]) => Body) =>
  withBody(both(ok, where), (body) => (Array.isArray(body) ? change(body) : body));

const requestWith = (change: (request: RawRequest) => Partial<RawRequest>): Breaking => ({
  onRequest: (request) => ({ ...request, ...change(request) }),
});
const without = (name: string, where: (request: RawRequest) => boolean = () => true) =>
  requestWith((request) => (where(request) ? { fields: fieldsWithout(request, name) } : {}));
const withoutParameter = (name: string) =>
  requestWith(({ target }) => ({ target: target.replace(new RegExp(`([?&])${name}=[^&]*&?`), '$1') }));
const withSentMembers = (members: Members, sent = /^(POST|PATCH)$/) =>
  requestWith((request) => {
    try {
      const body = JSON.stringify(replaced(JSON.parse(`${request.body}`), members, request));
      return sent.test(request.method) ? { body: Buffer.from(body) } : {};
    } catch {
      return {};
    }
  });

function fieldsWithout({ fields }: RawRequest, name: string): RawRequest['fields'] {
  return fields.filter(([field]) => field.toLowerCase() !== name);
}

function fieldOf({ fields }: RawRequest, wanted: string): string | undefined {
  return fields.find(([name]) => name.toLowerCase() === wanted)?.[1];
}

const LIST = path(/^\/api\/v1\/users\/?(\?|$)/);
const CHANGES = path(/\/changes/);

/** Faults that the checks must report, also if they only read. */
export const SEEN_READING: Faults = {
  'every response closes its connection': { onResponse: () => 'reset' },
  'everything is 500': withStatus(always, 500),
  'everything is 200': withStatus(always, 200),
  ...withStatuses({ 401: 403, 403: 401, 404: 400, 405: 404, 422: 400, 412: 409, 204: 200 }),
  'the request ID is dropped': withHeader(always, 'x-request-id'),
  'the request ID of refusals is dropped': withHeader(refused, 'x-request-id'),
  'X-Content-Type-Options is dropped': withHeader(always, 'x-content-type-options'),
  'Cache-Control of refusals is dropped': withHeader(refused, 'cache-control'),
  'WWW-Authenticate of 401 is dropped': withHeader(status(401), 'www-authenticate'),
  'WWW-Authenticate of 403 is dropped': withHeader(status(403), 'www-authenticate'),
  'Allow is dropped': withHeader(status(405), 'allow'),
  'ETag is dropped': withHeader(always, 'etag'),
  'ETag of HEAD is dropped': withHeader(method('HEAD'), 'etag'),
  'Link is dropped': withHeader(always, 'link'),
  'Accept-Patch is dropped': withHeader(always, 'accept-patch'),
  'every response is HTML': withHeader(always, 'content-type', 'text/html'),
  'the request ID is a different one': withHeader(always, 'x-request-id', crypto.randomUUID()),
  'the request ID is not forwarded': without('x-request-id'),
  'users may be cached': withHeader(both(path(/^\/api\/v1\/users/), ok), 'cache-control', 'max-age=60'),
  'the charset is dropped': withHeader(ok, 'content-type', 'application/json'),
  '/health is 204': withStatus(path(/^\/health/), 204),
  '/health says ok': withBody(path(/^\/health/), () => ({ status: 'ok' })),
  '/ready is 503': withStatus(path(/^\/ready/), 503),
  '/ready has a further member': withMembers(path(/^\/ready/), { database: 'up' }),
  'problems are plain JSON': withHeader(refused, 'content-type', 'application/json'),
  'problems lack `instance`': withProblems({ instance: undefined }),
  'problems have the query in `instance`': withProblems((_, { target }) => ({ instance: target })),
  'problems have another `title`': withProblems({ title: 'Error' }),
  'problems have another `type`': withProblems({ type: 'about:blank' }),
  'problems have another `status`': withProblems({ status: 400 }),
  'a 404 shows a line of a stack': withMembers(status(404), { detail: 'Error: x at f (/app/main.mjs:10:5)' }),
  '401 has a realm': withHeader(status(401), 'www-authenticate', 'Bearer realm="x"'),
  '403 names another role': withHeader(status(403), 'www-authenticate', (value) =>
    value.replace('users.read', 'users.write'),
  ),
  '422 names one fault only': withMembers(status(422), ({ errors }) => ({ errors: errors?.slice(0, 1) })),
  '422 does not name the place': withMembers(status(422), { errors: undefined }),
  '304 is never sent': without('if-none-match'),
  'ETag is weak': withHeader(always, 'etag', (value) => `W/${value}`),
  'Link is absolute': withHeader(always, 'link', (link) => link.replace('</', '<http://internal/')),
  'Allow lacks HEAD': withHeader(always, 'allow', (value) => value.replace('HEAD, ', '')),
  'HEAD is 404': withStatus(method('HEAD'), 404),
  'a trailing slash is 404': withStatus(path(/^\/[^?]*[^/]\/(\?|$)/), 404),
  'a path without a slash is redirected': changed(path(/^\/api\/v1\/users(\?|$)/), () => ({
    status: 308,
    headers: { location: '/api/v1/users/' },
    body: '',
  })),
  'an id in upper case is 404': withStatus(both(ok, path(/\/users\/[\dA-F-]*[A-F][\dA-F-]*$/)), 404),
  'users lack updated_at': withUsers({ updated_at: undefined }),
  'users have a further field': withUsers({ version: 1 }),
  'timestamps have no time zone': withUsers(({ created_at }) => ({ created_at: created_at.slice(0, -1) })),
  'is_active is a number': withUsers(({ is_active }) => ({ is_active: Number(is_active) })),
  'the list is in an envelope': withList(LIST, (items) => ({ items })),
  'the list is in reverse order': withList(LIST, (items) => items.toReversed()),
  'the list without a slash is another one': withList(path(/^\/api\/v1\/users(\?|$)/), (items) =>
    items.slice(1),
  ),
  ...Object.fromEntries(
    ['limit', 'skip', 'sort', 'email', 'ids', 'is_active', 'created_after', 'created_before', 'cursor'].map(
      (name) => [`the parameter ${name} is ignored`, withoutParameter(name)],
    ),
  ),
  'emails are found in their own case only': withList(path(/[?&]email=[^&]*[A-Z]/), () => []),
  'an invalid list query is 200': withStatus(both(status(422), path(/\?/)), 200),
  'If-Match is ignored': without('if-match'),
  'Accept is dropped': without('accept'),
  'there are no changes': withStatus(CHANGES, 404),
  'the feed has values': withList(CHANGES, (all) =>
    all.map((one) => ({ ...one, data: { ...one.data, email: 'a@b' } })),
  ),
  'the first accepted token authorizes later requests': { onRequest: oneTokenForAll() },
  'a token without a signature is accepted': { onRequest: oneTokenForAll(/^Bearer [^.]+\.[^.]+\.$/) },
  'the scheme is case-sensitive': without('authorization', (request) =>
    /^bearer|^BEARER/.test(fieldOf(request, 'authorization') ?? ''),
  ),
  'a token in the query is accepted': requestWith(({ target, fields }) => {
    const token = /access_token=([^&]+)/.exec(target)?.[1];
    return token ? { fields: [...fields, ['authorization', `Bearer ${token}`]] } : {};
  }),
  'the token is in a response': changed(always, ({ headers }, request) => ({
    headers: { ...headers, 'x-debug': fieldOf(request, 'authorization') ?? '' },
  })),
  'every third response is 502': { onResponse: everyThird() },
};

/** Faults that the checks must report if they write. */
export const SEEN_WRITING: Faults = {
  ...withStatuses({ 409: 422, 415: 422, 413: 400, 410: 404, 201: 200 }),
  'an external id is not returned': withMembers(both(status(201), path(/\/users\/?$/)), {
    external_id: undefined,
  }),
  'Location is dropped': withHeader(status(201), 'location'),
  'Location is absolute': withHeader(always, 'location', (location) => `http://internal:8000${location}`),
  'Location leads to another user': withHeader(always, 'location', (location) =>
    location.replace(/[\da-f-]{36}$/, '00000000-0000-0000-0000-000000000000'),
  ),
  'a read is cached for ever': { onResponse: cachedForEver() },
  'emails are returned in lower case': withUsers(({ email }) => ({ email: email.toLowerCase() })),
  'emails are stored in lower case': withSentMembers(({ email }) => ({ email: email?.toLowerCase?.() })),
  'If-Match is ignored by writes': without('if-match', ({ method }) => method !== 'GET'),
  'If-None-Match is ignored by writes': without('if-none-match', ({ method }) => method !== 'GET'),
  'If-Match is ignored by deletions': without('if-match', ({ method }) => method === 'DELETE'),
  'Idempotency-Key is ignored': without('idempotency-key'),
  'Idempotency-Key is ignored by batches': without('idempotency-key', ({ target }) =>
    target.endsWith('/batch'),
  ),
  'replays are not marked': withHeader(always, 'idempotency-replayed'),
  'every create is marked as a replay': withHeader(status(201), 'idempotency-replayed', 'true'),
  'a content type is assumed': requestWith((request) => ({
    fields: [...fieldsWithout(request, 'content-type'), ['content-type', 'application/json']],
  })),
  'members that are null are dropped': withSentMembers(
    (body) => Object.fromEntries(Object.entries(body).map(([name, value]) => [name, value ?? undefined])),
    /^PATCH$/,
  ),
  'PATCH replaces the user': withSentMembers(({ full_name = null }) => ({ full_name }), /^PATCH$/),
  'is_active can be set on create': withUsers(
    ({ full_name }) => (full_name === null ? { is_active: false } : {}),
    both(status(201), method('POST')),
  ),
  'full_name is cut': withSentMembers(
    ({ full_name }) => ({ full_name: full_name?.slice?.(0, 100) ?? full_name }),
    /^POST$/,
  ),
  'batches are always partial': withSentMembers(({ items }) => items && { mode: 'partial' }),
  'batches are always atomic': withSentMembers(({ items }) => items && { mode: 'atomic' }),
  'a batch is returned in another order': withList(path(/batch/), (users) => users.toReversed()),
  'a batch loses an item': withList(path(/batch/), (users) => users.slice(1)),
  'the feed is always empty': withList(CHANGES, () => []),
  'the feed repeats every change': withList(CHANGES, (all) => [...all, ...all]),
  'the feed skips deletions': withList(CHANGES, (all) => all.filter(({ type }) => type !== 'user.deleted')),
  'the feed does not name the changed fields': withList(CHANGES, (all) =>
    all.map((one) => ({ ...one, data: { ...one.data, changed: [] } })),
  ),
  'a list by email has all users': withoutParameter('email'),
  'exclude_actor is ignored': withoutParameter('exclude_actor'),
};

/** Like a balancer that keeps a dead instance in rotation. */
function everyThird(): OnResponse {
  let count = 0;
  return (answer) => {
    count += 1;
    return count % 3 === 0
      ? { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' }
      : answer;
  };
}

/** Like a cache that does not ask again, with the request ID of the new request. */
function cachedForEver(): OnResponse {
  const cached = new Map<string, RawResponse>();
  return (answer, { method, target }) => {
    if (method !== 'GET' || !/\/users\/[\da-f-]{36}$/.test(target) || answer.status !== 200) return answer;
    const first = cached.get(target) ?? answer;
    cached.set(target, first);
    const requestId = answer.headers['x-request-id'] ?? '';
    return { ...first, headers: { ...first.headers, 'x-request-id': requestId } };
  };
}

/** The first accepted token opens every later request whose Authorization has this form. */
function oneTokenForAll(form = /^/): NonNullable<Breaking['onRequest']> {
  let first: string | undefined;
  return (request) => {
    const given = fieldOf(request, 'authorization');
    first ??= given;
    if (!form.test(given ?? '')) return request;
    const fields = fieldsWithout(request, 'authorization');
    return first ? { ...request, fields: [...fields, ['authorization', first]] } : request;
  };
}
