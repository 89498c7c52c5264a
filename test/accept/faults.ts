import type { RawAnswer, RawRequest } from '../stage/raw-request.ts';

/** A fault of a deployment: what a proxy in front of a correct one changes. */
export type Fault = {
  readonly title: string;
  /** Also visible to checks that only read. */
  readonly isSeenReading?: true;
  readonly onRequest?: (request: RawRequest) => RawRequest;
  readonly onAnswer?: (
    answer: RawAnswer,
    request: RawRequest,
  ) => RawAnswer | 'reset' | Promise<RawAnswer | 'reset'>;
};

type Where = (answer: RawAnswer, request: RawRequest) => boolean;
type Change = (answer: RawAnswer, request: RawRequest) => Partial<RawAnswer>;

const always: Where = () => true;
const status =
  (wanted: number): Where =>
  (answer) =>
    answer.status === wanted;
const ok: Where = ({ status }) => status < 300;
const method =
  (wanted: string): Where =>
  (_, request) =>
    request.method === wanted;
const path =
  (pattern: RegExp): Where =>
  (_, { target }) =>
    pattern.test(target);
const both =
  (...all: readonly Where[]): Where =>
  (answer, request) =>
    all.every((one) => one(answer, request));

const changed =
  (where: Where, change: Change): NonNullable<Fault['onAnswer']> =>
  (answer, request) =>
    where(answer, request) ? withLength({ ...answer, ...change(answer, request) }) : answer;

/** The Content-Length is that of the body, if the response has one. */
function withLength(answer: RawAnswer): RawAnswer {
  const { 'content-length': length, ...headers } = answer.headers;
  const hasLength = length !== undefined && answer.body !== '';
  return {
    ...answer,
    headers: hasLength
      ? { ...headers, 'content-length': String(Buffer.byteLength(answer.body)) }
      : answer.headers,
  };
}

const withHeader = (where: Where, name: string, value?: string) =>
  changed(where, ({ headers: { [name]: _, ...others } }) => ({
    headers: value === undefined ? others : { ...others, [name]: value },
  }));

// biome-ignore lint/suspicious/noExplicitAny: the body can have any shape
type Body = any;
const withBody = (where: Where, change: (body: Body) => Body) =>
  changed(where, (answer) => {
    if (!answer.headers['content-type']?.includes('json') || answer.body === '') return {};
    return { body: JSON.stringify(change(JSON.parse(answer.body))) };
  });
const withStatus = (where: Where, other: number) => changed(where, () => ({ status: other }));

const without =
  (name: string, requests: (request: RawRequest) => boolean = () => true) =>
  (request: RawRequest) =>
    requests(request)
      ? { ...request, fields: request.fields.filter(([field]) => field.toLowerCase() !== name) }
      : request;
const withoutParameter = (name: string) => (request: RawRequest) => ({
  ...request,
  target: request.target.replace(new RegExp(`([?&])${name}=[^&]*&?`), '$1'),
});
const withSentBody =
  (change: (body: Body) => Body, sent = /^(POST|PATCH)$/) =>
  (request: RawRequest) => {
    try {
      if (!sent.test(request.method)) return request;
      const body = Buffer.from(JSON.stringify(change(JSON.parse(request.body.toString()))));
      return { ...request, body };
    } catch {
      return request;
    }
  };
const user = (change: (user: Body) => Body) => (body: Body) =>
  Array.isArray(body) ? body.map((one) => (one.email ? change(one) : one)) : body.email ? change(body) : body;
const faultOfProblem = (change: (problem: Body) => Body) =>
  withBody(({ headers }) => headers['content-type'] === 'application/problem+json', change);

const USERS = /^\/api\/v1\/users/;
const CHANGES = /\/changes/;

/** The checks must report every one of them. */
export const FAULTS: readonly Fault[] = [
  { title: 'every response closes its connection', isSeenReading: true, onAnswer: () => 'reset' },
  { title: 'everything is 500', isSeenReading: true, onAnswer: withStatus(always, 500) },
  { title: 'everything is 200', isSeenReading: true, onAnswer: withStatus(always, 200) },
  {
    title: 'every response is HTML',
    isSeenReading: true,
    onAnswer: withHeader(always, 'content-type', 'text/html'),
  },
  {
    title: 'the request ID is not returned',
    isSeenReading: true,
    onAnswer: withHeader(always, 'x-request-id'),
  },
  {
    title: 'the request ID is a different one',
    isSeenReading: true,
    onAnswer: withHeader(always, 'x-request-id', '5d2f3c1e-8f0a-4c1b-9d3e-2a1b4c5d6e7f'),
  },
  {
    title: 'the request ID is lost on refusals',
    isSeenReading: true,
    onAnswer: withHeader(({ status }) => status >= 400, 'x-request-id'),
  },
  { title: 'the request ID is not forwarded', isSeenReading: true, onRequest: without('x-request-id') },
  {
    title: 'X-Content-Type-Options is dropped',
    isSeenReading: true,
    onAnswer: withHeader(always, 'x-content-type-options'),
  },
  {
    title: 'users may be cached',
    isSeenReading: true,
    onAnswer: withHeader(both(path(USERS), ok), 'cache-control', 'max-age=60'),
  },
  {
    title: 'Cache-Control is dropped from refusals',
    isSeenReading: true,
    onAnswer: withHeader(({ status }) => status >= 400, 'cache-control'),
  },
  {
    title: 'the charset is dropped',
    isSeenReading: true,
    onAnswer: withHeader(ok, 'content-type', 'application/json'),
  },
  { title: '/health is 204', isSeenReading: true, onAnswer: withStatus(path(/^\/health/), 204) },
  {
    title: '/health says ok',
    isSeenReading: true,
    onAnswer: withBody(path(/^\/health/), () => ({ status: 'ok' })),
  },
  { title: '/ready is 503', isSeenReading: true, onAnswer: withStatus(path(/^\/ready/), 503) },
  {
    title: '/ready has a further member',
    isSeenReading: true,
    onAnswer: withBody(path(/^\/ready/), (body) => ({ ...body, database: 'up' })),
  },
  {
    title: 'problems are plain JSON',
    isSeenReading: true,
    onAnswer: withHeader(({ status }) => status >= 400, 'content-type', 'application/json'),
  },
  {
    title: 'problems lack `instance`',
    isSeenReading: true,
    onAnswer: faultOfProblem(({ instance: _, ...rest }) => rest),
  },
  {
    title: 'problems have the query in `instance`',
    isSeenReading: true,
    onAnswer: (answer, { target }) =>
      faultOfProblem((body) => ({ ...body, instance: target }))(answer, { target } as RawRequest),
  },
  {
    title: 'problems have a number as `title`',
    isSeenReading: true,
    onAnswer: faultOfProblem((body) => ({ ...body, title: body.status })),
  },
  {
    title: 'problems have another `type`',
    isSeenReading: true,
    onAnswer: faultOfProblem((body) => ({ ...body, type: 'about:blank' })),
  },
  {
    title: 'problems have another `status`',
    isSeenReading: true,
    onAnswer: faultOfProblem((body) => ({ ...body, status: 400 })),
  },
  {
    title: 'problems show a stack',
    isSeenReading: true,
    onAnswer: faultOfProblem((body) => ({ ...body, detail: 'Error: x\n at f (/app/main.mjs:10:5)' })),
  },
  {
    title: '401 has no WWW-Authenticate',
    isSeenReading: true,
    onAnswer: withHeader(status(401), 'www-authenticate'),
  },
  {
    title: '401 has a realm',
    isSeenReading: true,
    onAnswer: withHeader(status(401), 'www-authenticate', 'Bearer realm="x"'),
  },
  {
    title: '403 has no WWW-Authenticate',
    isSeenReading: true,
    onAnswer: withHeader(status(403), 'www-authenticate'),
  },
  { title: '401 is 403', isSeenReading: true, onAnswer: withStatus(status(401), 403) },
  { title: '403 is 401', isSeenReading: true, onAnswer: withStatus(status(403), 401) },
  { title: '404 is 400', isSeenReading: true, onAnswer: withStatus(status(404), 400) },
  { title: '405 is 404', isSeenReading: true, onAnswer: withStatus(status(405), 404) },
  { title: '405 has no Allow', isSeenReading: true, onAnswer: withHeader(status(405), 'allow') },
  { title: '422 is 400', isSeenReading: true, onAnswer: withStatus(status(422), 400) },
  {
    title: '422 names one fault only',
    isSeenReading: true,
    onAnswer: withBody(status(422), (body) => ({ ...body, errors: body.errors?.slice(0, 1) })),
  },
  {
    title: '422 does not name the place',
    isSeenReading: true,
    onAnswer: withBody(status(422), ({ errors: _, ...body }) => body),
  },
  {
    title: 'an external id is not returned',
    onAnswer: withBody(both(status(201), path(/\/users\/?$/)), ({ external_id: _, ...others }) => others),
  },
  { title: '409 is 422', onAnswer: withStatus(status(409), 422) },
  { title: '412 is 409', isSeenReading: true, onAnswer: withStatus(status(412), 409) },
  { title: '415 is 422', onAnswer: withStatus(status(415), 422) },
  { title: '413 is 400', onAnswer: withStatus(status(413), 400) },
  { title: '410 is 404', onAnswer: withStatus(status(410), 404) },
  { title: '201 is 200', onAnswer: withStatus(status(201), 200) },
  { title: '204 is 200', isSeenReading: true, onAnswer: withStatus(status(204), 200) },
  { title: '304 is never sent', isSeenReading: true, onRequest: without('if-none-match') },
  { title: 'Location is dropped', onAnswer: withHeader(status(201), 'location') },
  {
    title: 'Location is absolute',
    onAnswer: changed(
      both(status(201), ({ headers }) => headers.location !== undefined),
      ({ headers }) => ({ headers: { ...headers, location: `http://internal:8000${headers.location}` } }),
    ),
  },
  { title: 'ETag is dropped', isSeenReading: true, onAnswer: withHeader(always, 'etag') },
  {
    title: 'ETag is weak',
    isSeenReading: true,
    onAnswer: changed(
      ({ headers }) => headers.etag !== undefined,
      ({ headers }) => ({ headers: { ...headers, etag: `W/${headers.etag}` } }),
    ),
  },
  { title: 'Link is dropped', isSeenReading: true, onAnswer: withHeader(always, 'link') },
  {
    title: 'Link is absolute',
    isSeenReading: true,
    onAnswer: changed(
      ({ headers }) => headers.link !== undefined,
      ({ headers }) => ({
        headers: { ...headers, link: String(headers.link).replace('</', '<http://internal/') },
      }),
    ),
  },
  { title: 'Accept-Patch is dropped', isSeenReading: true, onAnswer: withHeader(always, 'accept-patch') },
  { title: 'HEAD is 404', isSeenReading: true, onAnswer: withStatus(method('HEAD'), 404) },
  {
    title: 'OPTIONS responds to browsers',
    isSeenReading: true,
    onAnswer: changed(method('OPTIONS'), () => ({
      status: 200,
      headers: { 'access-control-allow-origin': '*' },
    })),
  },
  {
    title: 'a trailing slash is 404',
    isSeenReading: true,
    onAnswer: withStatus(path(/^\/[^?]*[^/]\/(\?|$)/), 404),
  },
  {
    title: 'a path without a slash is redirected',
    isSeenReading: true,
    onAnswer: changed(path(/^\/api\/v1\/users(\?|$)/), () => ({
      status: 308,
      headers: { location: '/api/v1/users/' },
      body: '',
    })),
  },
  {
    title: 'users lack updated_at',
    isSeenReading: true,
    onAnswer: withBody(
      ok,
      user(({ updated_at: _, ...rest }) => rest),
    ),
  },
  {
    title: 'users have a further field',
    isSeenReading: true,
    onAnswer: withBody(
      ok,
      user((one) => ({ ...one, version: 1 })),
    ),
  },
  {
    title: 'timestamps have no time zone',
    isSeenReading: true,
    onAnswer: withBody(
      ok,
      user((one) => ({ ...one, created_at: one.created_at.slice(0, -1) })),
    ),
  },
  {
    title: 'timestamps have microseconds',
    isSeenReading: true,
    onAnswer: withBody(
      ok,
      user((one) => ({ ...one, created_at: one.created_at.replace('Z', '000Z') })),
    ),
  },
  {
    title: 'full_name is left out when it is null',
    isSeenReading: true,
    onAnswer: withBody(
      ok,
      user(({ full_name, ...one }) => (full_name === null ? one : { ...one, full_name })),
    ),
  },
  {
    title: 'is_active is a number',
    isSeenReading: true,
    onAnswer: withBody(
      ok,
      user((one) => ({ ...one, is_active: Number(one.is_active) })),
    ),
  },
  {
    title: 'emails are returned in lower case',
    onAnswer: withBody(
      ok,
      user((one) => ({ ...one, email: one.email.toLowerCase() })),
    ),
  },
  {
    title: 'emails are stored in lower case',
    onRequest: withSentBody((body) => (body.email ? { ...body, email: body.email.toLowerCase?.() } : body)),
  },
  {
    title: 'the list is in an envelope',
    isSeenReading: true,
    onAnswer: withBody(both(ok, path(/^\/api\/v1\/users\/?(\?|$)/)), (body) =>
      Array.isArray(body) ? { items: body } : body,
    ),
  },
  {
    title: 'the list is in reverse order',
    isSeenReading: true,
    onAnswer: withBody(both(ok, path(/^\/api\/v1\/users\/?(\?|$)/)), (body) =>
      Array.isArray(body) ? body.toReversed() : body,
    ),
  },
  ...['limit', 'skip', 'sort', 'email', 'ids', 'is_active', 'created_after', 'created_before', 'cursor'].map(
    (name): Fault => ({
      title: `the parameter ${name} is ignored`,
      isSeenReading: true,
      onRequest: withoutParameter(name),
    }),
  ),
  {
    title: 'an invalid list query returns the whole list',
    isSeenReading: true,
    onAnswer: changed(both(status(422), path(/\?/)), () => ({ status: 200, headers: {}, body: '[]' })),
  },
  { title: 'If-Match is ignored', isSeenReading: true, onRequest: without('if-match') },
  {
    title: 'If-Match is ignored by writes',
    onRequest: without('if-match', ({ method }) => method !== 'GET'),
  },
  {
    title: 'If-None-Match is ignored by writes',
    onRequest: without('if-none-match', ({ method }) => method !== 'GET'),
  },
  {
    title: 'If-Match is ignored by deletions',
    onRequest: without('if-match', ({ method }) => method === 'DELETE'),
  },
  { title: 'Idempotency-Key is ignored', onRequest: without('idempotency-key') },
  {
    title: 'Idempotency-Key is ignored by batches',
    onRequest: without('idempotency-key', ({ target }) => target.endsWith('/batch')),
  },
  { title: 'replays are not marked', onAnswer: withHeader(always, 'idempotency-replayed') },
  {
    title: 'every create is marked as a replay',
    onAnswer: withHeader(status(201), 'idempotency-replayed', 'true'),
  },
  {
    title: 'a content type is assumed',
    onRequest: (request) => ({
      ...request,
      fields: [...without('content-type')(request).fields, ['content-type', 'application/json']],
    }),
  },
  {
    title: 'members that are null are dropped',
    onRequest: withSentBody(
      (body) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)),
      /^PATCH$/,
    ),
  },
  {
    title: 'PATCH replaces the user',
    onRequest: withSentBody((body) => ({ full_name: null, ...body }), /^PATCH$/),
  },
  {
    title: 'is_active can be set on create',
    onAnswer: withBody(
      both(status(201), method('POST')),
      user((one) => (one.full_name === null ? { ...one, is_active: false } : one)),
    ),
  },
  {
    title: 'full_name is cut',
    onRequest: withSentBody(
      (body) => ({
        ...body,
        full_name: typeof body.full_name === 'string' ? body.full_name.slice(0, 100) : body.full_name,
      }),
      /^POST$/,
    ),
  },
  {
    title: 'batches are always partial',
    onRequest: withSentBody((body) => (body.items ? { ...body, mode: 'partial' } : body)),
  },
  {
    title: 'batches are always atomic',
    onRequest: withSentBody((body) => (body.items ? { ...body, mode: 'atomic' } : body)),
  },
  {
    title: 'a batch is returned in another order',
    onAnswer: withBody(both(status(201), path(/batch/)), (body) => body.toReversed()),
  },
  {
    title: 'a batch loses an item',
    onAnswer: withBody(path(/batch/), (body) => (Array.isArray(body) ? body.slice(1) : body)),
  },
  { title: 'there are no changes', isSeenReading: true, onAnswer: withStatus(path(CHANGES), 404) },
  { title: 'the feed is always empty', onAnswer: withBody(both(ok, path(CHANGES)), () => []) },
  {
    title: 'the feed repeats every change',
    onAnswer: withBody(both(ok, path(CHANGES)), (body) => [...body, ...body]),
  },
  {
    title: 'the feed skips deletions',
    onAnswer: withBody(both(ok, path(CHANGES)), (body) =>
      body.filter(({ type }: Body) => type !== 'user.deleted'),
    ),
  },
  {
    title: 'the feed skips a change per page',
    onAnswer: withBody(both(ok, path(/users\/changes\?.*limit=2/)), (body) => body.slice(1)),
  },
  {
    title: 'the feed has values',
    isSeenReading: true,
    onAnswer: withBody(both(ok, path(CHANGES)), (body) =>
      body.map((one: Body) => ({ ...one, data: { ...one.data, email: 'a@b' } })),
    ),
  },
  {
    title: 'the feed does not name the changed fields',
    onAnswer: withBody(both(ok, path(CHANGES)), (body) =>
      body.map((one: Body) => ({ ...one, data: { ...one.data, changed: [] } })),
    ),
  },
  { title: 'exclude_actor is ignored', onRequest: withoutParameter('exclude_actor') },
  {
    title: 'the first accepted token authorizes later requests',
    isSeenReading: true,
    onRequest: oneTokenForAll(),
  },
  {
    title: 'the scheme is case-sensitive',
    isSeenReading: true,
    onRequest: (request) =>
      /^bearer|^BEARER/.test(fieldOf(request, 'authorization') ?? '')
        ? without('authorization')(request)
        : request,
  },
  {
    title: 'a token in the query is accepted',
    isSeenReading: true,
    onRequest: (request) => {
      const token = /access_token=([^&]+)/.exec(request.target)?.[1];
      return token
        ? { ...request, fields: [...request.fields, ['authorization', `Bearer ${token}`]] }
        : request;
    },
  },
  {
    title: 'the token is in a response',
    isSeenReading: true,
    onAnswer: (answer, request) => ({
      ...answer,
      headers: { ...answer.headers, 'x-debug': fieldOf(request, 'authorization') ?? '' },
    }),
  },
  { title: 'every third response is 502', isSeenReading: true, onAnswer: everyThird() },
];

/** Like a balancer that keeps a dead instance in rotation. */
function everyThird(): NonNullable<Fault['onAnswer']> {
  let count = 0;
  return (answer) => {
    count += 1;
    return count % 3 === 0
      ? { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' }
      : answer;
  };
}

/** The first accepted token opens every later request. */
function oneTokenForAll(): NonNullable<Fault['onRequest']> {
  let first: string | undefined;
  return (request) => {
    first ??= fieldOf(request, 'authorization');
    const { fields } = without('authorization')(request);
    return first ? { ...request, fields: [...fields, ['authorization', first]] } : request;
  };
}

function fieldOf({ fields }: RawRequest, wanted: string): string | undefined {
  return fields.find(([name]) => name.toLowerCase() === wanted)?.[1];
}
