import type { RawRequest, RawResponse } from '../stage/raw-request.ts';

/** What a proxy in front of a correct deployment changes. */
export type Breaking = {
  readonly onRequest?: (request: RawRequest) => RawRequest;
  readonly onResponse?: (
    answer: RawResponse,
    request: RawRequest,
  ) => RawResponse | 'reset' | Promise<RawResponse | 'reset'>;
};

/** A fault of a deployment. */
export type Fault = Breaking & {
  readonly title: string;
  /** Also visible to checks that only read. */
  readonly isSeenReading: boolean;
};

type Where = (answer: RawResponse, request: RawRequest) => boolean;
type OnResponse = NonNullable<Breaking['onResponse']>;

const always: Where = () => true;
const refused: Where = ({ status }) => status >= 400;

function status(wanted: number): Where {
  return (answer) => answer.status === wanted;
}

function path(pattern: RegExp): Where {
  return (_, { target }) => pattern.test(target);
}

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

const withHeader = (where: Where, name: string, value?: string | ((value: string) => string)) =>
  changed(where, ({ headers: { [name]: before, ...others } }) => {
    const after = typeof value === 'function' ? before && value(before) : value;
    return { headers: after === undefined ? others : { ...others, [name]: after } };
  });
const withStatus = (where: Where, other: number) => changed(where, () => ({ status: other }));

// biome-ignore lint/suspicious/noExplicitAny: the body can have any shape
type Body = any;
const withBody = (where: Where, change: (body: Body, request: RawRequest) => Body) =>
  changed(where, ({ headers, body }, request) =>
    headers['content-type']?.includes('json') && body !== ''
      ? { body: JSON.stringify(change(JSON.parse(body), request)) }
      : {},
  );
const withProblems = (change: (problem: Body, request: RawRequest) => Body) =>
  withBody(({ headers }) => headers['content-type'] === 'application/problem+json', change);
const withList = (where: Where, change: (items: Body[]) => Body) =>
  withBody(where, (body) => (Array.isArray(body) ? change(body) : body));

const requestWith = (change: (request: RawRequest) => Partial<RawRequest>): Breaking => ({
  onRequest: (request) => ({ ...request, ...change(request) }),
});
const without = (name: string, where: (request: RawRequest) => boolean = () => true) =>
  requestWith((request) => (where(request) ? { fields: fieldsWithout(request, name) } : {}));
const withoutParameter = (name: string) =>
  requestWith(({ target }) => ({ target: target.replace(new RegExp(`([?&])${name}=[^&]*&?`), '$1') }));
function fieldsWithout({ fields }: RawRequest, name: string): RawRequest['fields'] {
  return fields.filter(([field]) => field.toLowerCase() !== name);
}

const LIST = path(/^\/api\/v1\/users\/?(\?|$)/);
const CHANGES = path(/\/changes/);

/** Faults that the checks must report, also if they only read: at least one for each check. */
const SEEN_READING: Readonly<Record<string, Breaking>> = {
  'every response closes its connection': { onResponse: () => 'reset' },
  'every third response is 502': { onResponse: everyThird() },
  'every response is HTML': withHeader(always, 'content-type', 'text/html'),
  '401 is 403': withStatus(status(401), 403),
  '422 is 400': withStatus(status(422), 400),
  '412 is 409': withStatus(status(412), 409),
  ...Object.fromEntries(
    (
      [
        ['x-request-id', refused],
        ['x-content-type-options', always],
        ['cache-control', refused],
        ['www-authenticate', status(401)],
        ['allow', status(405)],
        ['etag', always],
        ['link', always],
        ['accept-patch', always],
      ] as const
    ).map(([name, where]) => [`${name} is dropped`, withHeader(where, name)]),
  ),
  'the request ID is not forwarded': without('x-request-id'),
  '/health says ok': withBody(path(/^\/health/), () => ({ status: 'ok' })),
  '/ready is 503': withStatus(path(/^\/ready/), 503),
  'problems show a stack': withProblems((body) => ({
    ...body,
    detail: 'Error: x\n at f (/app/main.mjs:10:5)',
  })),
  '403 names another role': withHeader(status(403), 'www-authenticate', (value) =>
    value.replace('users.read', 'users.write'),
  ),
  '304 is never sent': without('if-none-match'),
  'ETag is weak': withHeader(always, 'etag', (value) => `W/${value}`),
  'Link is absolute': withHeader(always, 'link', (link) => link.replace('</', '<http://internal/')),
  'a path without a slash is redirected': changed(path(/^\/api\/v1\/users(\?|$)/), () => ({
    status: 308,
    headers: { location: '/api/v1/users/' },
    body: '',
  })),
  'users lack updated_at': withList(LIST, (all) => all.map(({ updated_at: _, ...rest }) => rest)),
  ...Object.fromEntries(
    ['limit', 'sort', 'email', 'ids', 'created_after', 'cursor'].map((name) => [
      `the parameter ${name} is ignored`,
      withoutParameter(name),
    ]),
  ),
  'If-Match is ignored': without('if-match'),
  'Accept is dropped': without('accept'),
  'there are no changes': withStatus(CHANGES, 404),
  'the feed has values': withList(CHANGES, (all) =>
    all.map((one) => ({ ...one, data: { ...one.data, email: 'a@b' } })),
  ),
};

/** Faults that the checks must report if they write. */
const SEEN_WRITING: Readonly<Record<string, Breaking>> = {
  '413 is 400': withStatus(status(413), 400),
  '410 is 404': withStatus(status(410), 404),
  'If-Match is ignored by deletions': without('if-match', ({ method }) => method === 'DELETE'),
  'If-None-Match is ignored by writes': without('if-none-match', ({ method }) => method !== 'GET'),
  'Idempotency-Key is ignored': without('idempotency-key'),
  'replays are not marked': withHeader(always, 'idempotency-replayed'),
  'a batch is returned in another order': withList(path(/batch/), (users) => users.toReversed()),
  'the feed skips deletions': withList(CHANGES, (all) => all.filter(({ type }) => type !== 'user.deleted')),
};

/** The checks must report every one of them. */
export const FAULTS: readonly Fault[] = [
  ...Object.entries(SEEN_READING).map(([title, breaking]) => ({ title, isSeenReading: true, ...breaking })),
  ...Object.entries(SEEN_WRITING).map(([title, breaking]) => ({ title, isSeenReading: false, ...breaking })),
];

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
