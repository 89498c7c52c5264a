import type { RawAnswer, RawRequest } from '../stage/raw-request.ts';

/** What a proxy in front of a correct deployment changes. */
export type Breaking = {
  readonly onRequest?: (request: RawRequest) => RawRequest;
  readonly onAnswer?: (
    answer: RawAnswer,
    request: RawRequest,
  ) => RawAnswer | 'reset' | Promise<RawAnswer | 'reset'>;
};

/** A fault of a deployment. */
export type Fault = Breaking & {
  readonly title: string;
  /** Also visible to checks that only read. */
  readonly isSeenReading: boolean;
};

type Where = (answer: RawAnswer, request: RawRequest) => boolean;
type Change = (answer: RawAnswer, request: RawRequest) => Partial<RawAnswer>;

const always: Where = () => true;
const status =
  (wanted: number): Where =>
  (answer) =>
    answer.status === wanted;
const ok: Where = ({ status }) => status < 300;
const refused: Where = ({ status }) => status >= 400;
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
  (where: Where, change: Change): NonNullable<Breaking['onAnswer']> =>
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
const withUsers = (change: (user: Body) => Body, where = ok) =>
  withBody(where, (body) => {
    const changedUser = (one: Body) => (one.email ? change(one) : one);
    return Array.isArray(body) ? body.map(changedUser) : changedUser(body);
  });
const faultOfProblem = (change: (problem: Body) => Body) =>
  withBody(({ headers }) => headers['content-type'] === 'application/problem+json', change);

const USERS = /^\/api\/v1\/users/;
const LIST = /^\/api\/v1\/users\/?(\?|$)/;
const CHANGES = /\/changes/;

/** Faults that the checks must report, also if they only read. */
const SEEN_READING: Readonly<Record<string, Breaking>> = {
  'every response closes its connection': { onAnswer: () => 'reset' },
  'everything is 500': { onAnswer: withStatus(always, 500) },
  'everything is 200': { onAnswer: withStatus(always, 200) },
  'every response is HTML': { onAnswer: withHeader(always, 'content-type', 'text/html') },
  'the request ID is not returned': { onAnswer: withHeader(always, 'x-request-id') },
  'the request ID is a different one': {
    onAnswer: withHeader(always, 'x-request-id', '5d2f3c1e-8f0a-4c1b-9d3e-2a1b4c5d6e7f'),
  },
  'the request ID is lost on refusals': { onAnswer: withHeader(refused, 'x-request-id') },
  'the request ID is not forwarded': { onRequest: without('x-request-id') },
  'X-Content-Type-Options is dropped': { onAnswer: withHeader(always, 'x-content-type-options') },
  'users may be cached': { onAnswer: withHeader(both(path(USERS), ok), 'cache-control', 'max-age=60') },
  'Cache-Control is dropped from refusals': { onAnswer: withHeader(refused, 'cache-control') },
  'the charset is dropped': { onAnswer: withHeader(ok, 'content-type', 'application/json') },
  '/health is 204': { onAnswer: withStatus(path(/^\/health/), 204) },
  '/health says ok': { onAnswer: withBody(path(/^\/health/), () => ({ status: 'ok' })) },
  '/ready is 503': { onAnswer: withStatus(path(/^\/ready/), 503) },
  '/ready has a further member': {
    onAnswer: withBody(path(/^\/ready/), (body) => ({ ...body, database: 'up' })),
  },
  'problems are plain JSON': { onAnswer: withHeader(refused, 'content-type', 'application/json') },
  'problems lack `instance`': { onAnswer: faultOfProblem(({ instance: _, ...rest }) => rest) },
  'problems have the query in `instance`': {
    onAnswer: (answer, { target }) =>
      faultOfProblem((body) => ({ ...body, instance: target }))(answer, { target } as RawRequest),
  },
  'problems have a number as `title`': {
    onAnswer: faultOfProblem((body) => ({ ...body, title: body.status })),
  },
  'problems have another `type`': { onAnswer: faultOfProblem((body) => ({ ...body, type: 'about:blank' })) },
  'problems have another `status`': { onAnswer: faultOfProblem((body) => ({ ...body, status: 400 })) },
  'problems show a stack': {
    onAnswer: faultOfProblem((body) => ({ ...body, detail: 'Error: x\n at f (/app/main.mjs:10:5)' })),
  },
  '401 has no WWW-Authenticate': { onAnswer: withHeader(status(401), 'www-authenticate') },
  '401 has a realm': { onAnswer: withHeader(status(401), 'www-authenticate', 'Bearer realm="x"') },
  '403 has no WWW-Authenticate': { onAnswer: withHeader(status(403), 'www-authenticate') },
  '401 is 403': { onAnswer: withStatus(status(401), 403) },
  '403 is 401': { onAnswer: withStatus(status(403), 401) },
  '404 is 400': { onAnswer: withStatus(status(404), 400) },
  '405 is 404': { onAnswer: withStatus(status(405), 404) },
  '405 has no Allow': { onAnswer: withHeader(status(405), 'allow') },
  '422 is 400': { onAnswer: withStatus(status(422), 400) },
  '422 names one fault only': {
    onAnswer: withBody(status(422), (body) => ({ ...body, errors: body.errors?.slice(0, 1) })),
  },
  '422 does not name the place': { onAnswer: withBody(status(422), ({ errors: _, ...body }) => body) },
  '412 is 409': { onAnswer: withStatus(status(412), 409) },
  '204 is 200': { onAnswer: withStatus(status(204), 200) },
  '304 is never sent': { onRequest: without('if-none-match') },
  'ETag is dropped': { onAnswer: withHeader(always, 'etag') },
  'ETag is weak': {
    onAnswer: changed(
      ({ headers }) => headers.etag !== undefined,
      ({ headers }) => ({ headers: { ...headers, etag: `W/${headers.etag}` } }),
    ),
  },
  'Link is dropped': { onAnswer: withHeader(always, 'link') },
  'Link is absolute': {
    onAnswer: changed(
      ({ headers }) => headers.link !== undefined,
      ({ headers }) => ({
        headers: { ...headers, link: String(headers.link).replace('</', '<http://internal/') },
      }),
    ),
  },
  'Accept-Patch is dropped': { onAnswer: withHeader(always, 'accept-patch') },
  'HEAD is 404': { onAnswer: withStatus(method('HEAD'), 404) },
  'OPTIONS responds to browsers': {
    onAnswer: changed(method('OPTIONS'), () => ({
      status: 200,
      headers: { 'access-control-allow-origin': '*' },
    })),
  },
  'a trailing slash is 404': { onAnswer: withStatus(path(/^\/[^?]*[^/]\/(\?|$)/), 404) },
  'a path without a slash is redirected': {
    onAnswer: changed(path(/^\/api\/v1\/users(\?|$)/), () => ({
      status: 308,
      headers: { location: '/api/v1/users/' },
      body: '',
    })),
  },
  'users lack updated_at': { onAnswer: withUsers(({ updated_at: _, ...rest }) => rest) },
  'users have a further field': { onAnswer: withUsers((one) => ({ ...one, version: 1 })) },
  'timestamps have no time zone': {
    onAnswer: withUsers((one) => ({ ...one, created_at: one.created_at.slice(0, -1) })),
  },
  'timestamps have microseconds': {
    onAnswer: withUsers((one) => ({ ...one, created_at: one.created_at.replace('Z', '000Z') })),
  },
  'full_name is left out when it is null': {
    onAnswer: withUsers(({ full_name, ...one }) => (full_name === null ? one : { ...one, full_name })),
  },
  'is_active is a number': { onAnswer: withUsers((one) => ({ ...one, is_active: Number(one.is_active) })) },
  'the list is in an envelope': {
    onAnswer: withBody(both(ok, path(LIST)), (body) => (Array.isArray(body) ? { items: body } : body)),
  },
  'the list is in reverse order': {
    onAnswer: withBody(both(ok, path(LIST)), (body) => (Array.isArray(body) ? body.toReversed() : body)),
  },
  ...Object.fromEntries(
    ['limit', 'skip', 'sort', 'email', 'ids', 'is_active', 'created_after', 'created_before', 'cursor'].map(
      (name) => [`the parameter ${name} is ignored`, { onRequest: withoutParameter(name) }],
    ),
  ),
  'an invalid list query returns the whole list': {
    onAnswer: changed(both(status(422), path(/\?/)), () => ({ status: 200, headers: {}, body: '[]' })),
  },
  'If-Match is ignored': { onRequest: without('if-match') },
  'there are no changes': { onAnswer: withStatus(path(CHANGES), 404) },
  'the feed has values': {
    onAnswer: withBody(both(ok, path(CHANGES)), (body) =>
      body.map((one: Body) => ({ ...one, data: { ...one.data, email: 'a@b' } })),
    ),
  },
  'the first accepted token authorizes later requests': { onRequest: oneTokenForAll() },
  'the scheme is case-sensitive': {
    onRequest: (request) =>
      /^bearer|^BEARER/.test(fieldOf(request, 'authorization') ?? '')
        ? without('authorization')(request)
        : request,
  },
  'a token in the query is accepted': {
    onRequest: (request) => {
      const token = /access_token=([^&]+)/.exec(request.target)?.[1];
      return token
        ? { ...request, fields: [...request.fields, ['authorization', `Bearer ${token}`]] }
        : request;
    },
  },
  'the token is in a response': {
    onAnswer: (answer, request) => ({
      ...answer,
      headers: { ...answer.headers, 'x-debug': fieldOf(request, 'authorization') ?? '' },
    }),
  },
  'every third response is 502': { onAnswer: everyThird() },
};

/** Faults that the checks must report if they write. */
const SEEN_WRITING: Readonly<Record<string, Breaking>> = {
  'an external id is not returned': {
    onAnswer: withBody(both(status(201), path(/\/users\/?$/)), ({ external_id: _, ...others }) => others),
  },
  '409 is 422': { onAnswer: withStatus(status(409), 422) },
  '415 is 422': { onAnswer: withStatus(status(415), 422) },
  '413 is 400': { onAnswer: withStatus(status(413), 400) },
  '410 is 404': { onAnswer: withStatus(status(410), 404) },
  '201 is 200': { onAnswer: withStatus(status(201), 200) },
  'Location is dropped': { onAnswer: withHeader(status(201), 'location') },
  'Location is absolute': {
    onAnswer: changed(
      both(status(201), ({ headers }) => headers.location !== undefined),
      ({ headers }) => ({ headers: { ...headers, location: `http://internal:8000${headers.location}` } }),
    ),
  },
  'emails are returned in lower case': {
    onAnswer: withUsers((one) => ({ ...one, email: one.email.toLowerCase() })),
  },
  'emails are stored in lower case': {
    onRequest: withSentBody((body) => (body.email ? { ...body, email: body.email.toLowerCase?.() } : body)),
  },
  'If-Match is ignored by writes': { onRequest: without('if-match', ({ method }) => method !== 'GET') },
  'If-None-Match is ignored by writes': {
    onRequest: without('if-none-match', ({ method }) => method !== 'GET'),
  },
  'If-Match is ignored by deletions': { onRequest: without('if-match', ({ method }) => method === 'DELETE') },
  'Idempotency-Key is ignored': { onRequest: without('idempotency-key') },
  'Idempotency-Key is ignored by batches': {
    onRequest: without('idempotency-key', ({ target }) => target.endsWith('/batch')),
  },
  'replays are not marked': { onAnswer: withHeader(always, 'idempotency-replayed') },
  'every create is marked as a replay': { onAnswer: withHeader(status(201), 'idempotency-replayed', 'true') },
  'a content type is assumed': {
    onRequest: (request) => ({
      ...request,
      fields: [...without('content-type')(request).fields, ['content-type', 'application/json']],
    }),
  },
  'members that are null are dropped': {
    onRequest: withSentBody(
      (body) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)),
      /^PATCH$/,
    ),
  },
  'PATCH replaces the user': { onRequest: withSentBody((body) => ({ full_name: null, ...body }), /^PATCH$/) },
  'is_active can be set on create': {
    onAnswer: withUsers(
      (one) => (one.full_name === null ? { ...one, is_active: false } : one),
      both(status(201), method('POST')),
    ),
  },
  'full_name is cut': {
    onRequest: withSentBody(
      (body) => ({
        ...body,
        full_name: typeof body.full_name === 'string' ? body.full_name.slice(0, 100) : body.full_name,
      }),
      /^POST$/,
    ),
  },
  'batches are always partial': {
    onRequest: withSentBody((body) => (body.items ? { ...body, mode: 'partial' } : body)),
  },
  'batches are always atomic': {
    onRequest: withSentBody((body) => (body.items ? { ...body, mode: 'atomic' } : body)),
  },
  'a batch is returned in another order': {
    onAnswer: withBody(both(status(201), path(/batch/)), (body) => body.toReversed()),
  },
  'a batch loses an item': {
    onAnswer: withBody(path(/batch/), (body) => (Array.isArray(body) ? body.slice(1) : body)),
  },
  'the feed is always empty': { onAnswer: withBody(both(ok, path(CHANGES)), () => []) },
  'the feed repeats every change': {
    onAnswer: withBody(both(ok, path(CHANGES)), (body) => [...body, ...body]),
  },
  'the feed skips deletions': {
    onAnswer: withBody(both(ok, path(CHANGES)), (body) =>
      body.filter(({ type }: Body) => type !== 'user.deleted'),
    ),
  },
  'the feed skips a change per page': {
    onAnswer: withBody(both(ok, path(/users\/changes\?.*limit=2/)), (body) => body.slice(1)),
  },
  'the feed does not name the changed fields': {
    onAnswer: withBody(both(ok, path(CHANGES)), (body) =>
      body.map((one: Body) => ({ ...one, data: { ...one.data, changed: [] } })),
    ),
  },
  'exclude_actor is ignored': { onRequest: withoutParameter('exclude_actor') },
};

/** The checks must report every one of them. */
export const FAULTS: readonly Fault[] = [
  ...Object.entries(SEEN_READING).map(([title, breaking]) => ({ title, isSeenReading: true, ...breaking })),
  ...Object.entries(SEEN_WRITING).map(([title, breaking]) => ({ title, isSeenReading: false, ...breaking })),
];

/** Like a balancer that keeps a dead instance in rotation. */
function everyThird(): NonNullable<Breaking['onAnswer']> {
  let count = 0;
  return (answer) => {
    count += 1;
    return count % 3 === 0
      ? { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' }
      : answer;
  };
}

/** The first accepted token opens every later request. */
function oneTokenForAll(): NonNullable<Breaking['onRequest']> {
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
