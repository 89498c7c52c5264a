import type { RawRequest } from '../stage/raw-request.ts';

/**
 * A request, and the status of its answer wherever the service runs. Names in braces stand for tokens and ids, `{next}`
 * for the last link to a next page.
 */
export type Case = {
  readonly title: string;
  readonly status: number;
  readonly request: RawRequest;
  /** The name that the id in the answer gets, for the requests that follow. */
  readonly keeps?: string;
};

type Fields = RawRequest['fields'];
type Rest = {
  fields?: Fields;
  body?: string | Buffer;
  keeps?: string;
  as?: 'both' | 'reader' | 'writer' | 'nobody';
  /** In place of the token of `as`. */
  authorization?: string;
  key?: string;
};

const USERS = '/api/v1/users/';
const UNKNOWN = `${USERS}00000000-0000-0000-0000-000000000000`;
const ADA = `${USERS}{ada}`;
const JSON_TYPE = [['Content-Type', 'application/json']] as const;

function request(
  status: number,
  line: string,
  title: string,
  { fields = [], body = '', keeps, as = 'both', authorization = `Bearer {${as}}`, key }: Rest = {},
): Case {
  const [method = '', target = ''] = line.split(' ');
  const token: Fields = as === 'nobody' ? [] : [['Authorization', authorization]];
  const keyed: Fields = key ? [['Idempotency-Key', key]] : [];
  return {
    title,
    status,
    ...(keeps && { keeps }),
    request: { method, target, fields: [...token, ...fields, ...keyed], body: Buffer.from(body) },
  };
}

/** A request whose body is declared as JSON, and is `value` written as JSON unless it is a text or bytes already. */
function json(
  status: number,
  line: string,
  value: unknown,
  title: string,
  { fields = [], ...rest }: Rest = {},
): Case {
  const body = typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value);
  return request(status, line, title, { ...rest, fields: [...JSON_TYPE, ...fields], body });
}

const create = (status: number, value: unknown, title: string, rest?: Rest) =>
  json(status, `POST ${USERS}`, value, title, rest);

const BATCH = `${USERS}batch`;
const PAIR = { items: [{ email: 'one@example.org', full_name: 'One' }, { email: 'two@example.org' }] };
const MIXED = {
  mode: 'partial',
  items: [{ email: 'three@example.org' }, { email: 'ONE@example.org' }, { email: 'none' }, null],
};
const NAMED = [
  { email: 'four@example.org', external_id: 'hr é+1' },
  { email: 'four@example.org', external_id: 'four' },
  { email: 'five@example.org', external_id: 'four' },
];

/** While all is well. The first request sees no user. */
export const usual: readonly Case[] = [
  request(200, `GET ${USERS}`, 'no users yet'),

  // Probes.
  request(200, 'GET /health', 'health', { as: 'nobody' }),
  request(200, 'HEAD /health', 'HEAD of health', { as: 'nobody' }),
  request(200, 'GET /ready', 'ready', { as: 'nobody' }),
  request(200, 'HEAD /ready/', 'HEAD of ready', { as: 'nobody' }),

  // Creates.
  create(201, { email: 'ada@example.com', full_name: 'Ada Lovelace' }, 'a user', { keeps: 'ada' }),
  json(201, 'POST /api/v1/users', { email: 'grace@example.com' }, 'a user without a slash or a name', {
    keeps: 'grace',
  }),
  create(201, '{"email":"zoë@example.com","full_name":"Zoë \\ud83c\\udf0d Ωmega"}', 'a user beyond ASCII'),
  create(201, '{"email":"proto@example.com","__proto__":{"is_active":false}}', 'unknown members'),
  request(201, `POST ${USERS}`, 'a body that API Gateway takes for bytes', {
    fields: [['Content-Type', 'Application/Vnd.Example$V1+JSON;charset="utf-8"']],
    body: '{"email":"bytes@example.com"}',
  }),
  create(409, { email: 'ADA@example.com' }, 'an email that is taken'),
  create(201, { email: 'hr@example.com', external_id: 'hr é+1' }, 'an external id', { key: 'e-1' }),
  create(201, { email: 'hr@example.com', external_id: 'hr é+1' }, 'an external id again', { key: 'e-1' }),
  create(409, { email: 'x@example.com', external_id: 'hr é+1' }, 'an external id that is taken'),
  create(422, { email: 'nobody', full_name: 1, is_active: 'no' }, 'values that are not allowed'),
  create(422, '{"email":"a@example.com","full_name":"\\ud800"}', 'a lone surrogate'),
  create(422, '', 'an empty body'),
  create(422, 'null', 'null'),
  create(422, Buffer.from('7b22656d61696c223a22ff227d', 'hex'), 'a body that is not UTF-8'),
  create(413, 'x'.repeat(65_537), 'a body that is too large'),
  request(422, `POST ${USERS}`, 'a body that is too large only in base64', {
    fields: JSON_TYPE,
    body: Buffer.alloc(60_000, 0xff),
  }),
  request(413, `POST ${USERS}`, 'a large body that API Gateway puts in base64', {
    fields: JSON_TYPE,
    body: Buffer.alloc(65_537, 0xff),
  }),
  request(415, `POST ${USERS}`, 'a body that is not declared', { body: '{"email":"a@example.com"}' }),
  create(415, '{}', 'an encoded body', { fields: [['Content-Encoding', 'gzip']] }),

  // Idempotency keys.
  create(201, { email: 'key@example.com' }, 'a user under a key', { key: 'k-1', keeps: 'key' }),
  create(201, { email: 'key@example.com', full_name: null }, 'the same again', { key: '"k-1"' }),
  create(422, { email: 'other@example.com' }, 'the key with other values', { key: 'k-1' }),
  request(204, `DELETE ${USERS}{key}`, 'the user of the key'),
  create(410, { email: 'key@example.com' }, 'the user of the key is gone', { key: 'k-1' }),

  // Batches.
  json(201, `POST ${BATCH}`, PAIR, 'an atomic batch', { key: 'b-1' }),
  json(201, `POST ${BATCH}/`, { ...PAIR, mode: 'atomic' }, 'an atomic batch again', { key: 'b-1' }),
  json(422, `POST ${BATCH}`, MIXED, 'the key with another batch', { key: 'b-1' }),
  json(409, `POST ${BATCH}`, PAIR, 'an atomic batch of taken emails'),
  json(422, `POST ${BATCH}`, { items: [{ email: 'a@b' }, { email: 'A@B' }] }, 'an email twice'),
  json(422, `POST ${BATCH}`, { items: [{}, { email: 'x' }], mode: null }, 'items and a mode that are none'),
  json(200, `POST ${BATCH}`, MIXED, 'a partial batch', { key: 'b-2' }),
  json(200, `POST ${BATCH}`, MIXED, 'a partial batch again', { key: 'b-2' }),
  json(200, `POST ${BATCH}`, { items: NAMED, mode: 'partial' }, 'a partial batch of external ids'),
  json(413, `POST ${BATCH}`, 'x'.repeat(65_537), 'a batch that is too large'),

  // Callers.
  request(401, `GET ${USERS}`, 'no token', { as: 'nobody' }),
  request(401, `GET ${USERS}`, 'an expired token', { authorization: 'Bearer {expired}' }),
  request(401, `GET ${USERS}`, 'two tokens', { fields: [['Authorization', 'Bearer {reader}']] }),
  request(401, `HEAD ${USERS}`, 'HEAD without a token', { as: 'nobody' }),
  create(403, '{', 'create by a reader', { as: 'reader' }),
  request(403, `GET ${USERS}`, 'list by a writer', { as: 'writer' }),
  request(200, `GET ${USERS}?limit=1`, 'the scheme in another case', {
    as: 'nobody',
    fields: [['authorization', 'BEARER   {both}']],
  }),

  // Lists.
  request(200, `GET ${USERS}`, 'all users'),
  request(200, `GET ${USERS}?limit=2`, 'the first page, and the way to the next'),
  request(200, 'GET {next}', 'the next page'),
  request(422, 'GET {next}&is_active=true', 'a cursor beside another filter'),
  request(200, `GET ${USERS}?sort=-created_at&is_active=true`, 'active users, newest first'),
  request(200, `GET ${USERS}?email=ZO%C3%8B@example.com`, 'the user with an email beyond ASCII'),
  request(200, `GET ${USERS}?external_id=hr+%C3%A9%2B1`, 'the user with an external id'),
  request(200, `GET ${USERS}?ids={ada},{grace}`, 'users by id'),
  request(
    200,
    `GET ${USERS}?created_after=2020-01-01T00:00:00Z&created_before=2020-01-01t00:00:00.0001-01:30`,
    'nobody of a time',
  ),
  request(
    422,
    `GET ${USERS}?email=a+b@example.com&is_active=1&ids=,&created_after=2026-02-30T00:00:00Z&sort=id&cursor=x&skip=1`,
    'filters, order and cursor that are not allowed',
  ),
  request(422, `GET ${USERS}?email=%ff@example.com`, 'an email that is no UTF-8'),
  request(200, `HEAD ${USERS}`, 'HEAD of the list'),
  request(422, `GET ${USERS}?limit=1&limit=2`, 'a parameter given twice'),
  request(422, `GET ${USERS}?ids%5B%5D=none`, 'a parameter with brackets'),

  // Reads of one user.
  request(200, `GET ${ADA}`, 'a user'),
  request(304, `GET ${ADA}`, 'a version the caller has', { fields: [['If-None-Match', '"0", W/"1"']] }),
  request(304, `HEAD ${ADA}`, 'HEAD of a version the caller has', { fields: [['If-None-Match', '*']] }),
  request(412, `GET ${ADA}`, 'a version that is not there', { fields: [['If-Match', '"9"']] }),
  request(200, `HEAD ${ADA}`, 'HEAD of a user'),
  request(404, `GET ${UNKNOWN}`, 'an unknown user'),
  request(422, `GET ${USERS}42`, 'an id that is none'),
  request(422, `GET ${USERS}caf%C3%A9%20%7Bid%7D`, 'an encoded id that is none'),
  request(422, `GET ${USERS}50%20%3F`, 'an id with an encoded question mark'),
  request(422, `GET ${USERS}a|b^c[d]\\e"f<g>`, 'an id of characters that should be encoded'),
  request(200, `GET ${ADA}`, 'a request ID of the caller', { fields: [['X-Request-ID', 'call/7f3a;n=1']] }),
  request(404, `GET ${UNKNOWN}`, 'a request ID that is too long', {
    fields: [['X-Request-ID', 'x'.repeat(129)]],
  }),

  // Updates.
  json(200, `PATCH ${ADA}`, { full_name: null, is_active: false }, 'some members'),
  json(200, `PATCH ${ADA}/`, {}, 'no member'),
  request(200, `PATCH ${ADA}`, 'a merge patch', {
    fields: [
      ['Content-Type', 'application/merge-patch+json'],
      ['If-Match', '"3"'],
    ],
    body: '{"full_name":"Augusta Ada King"}',
  }),
  json(200, `PATCH ${ADA}`, {}, 'one of two entity tags', {
    fields: [
      ['If-Match', '"1"'],
      ['If-Match', '"4"'],
    ],
  }),
  json(412, `PATCH ${ADA}`, { full_name: 'A' }, 'another version', { fields: [['If-Match', '"1"']] }),
  json(409, `PATCH ${ADA}`, { email: 'Grace@Example.com' }, 'the email of another user'),
  json(404, `PATCH ${UNKNOWN}`, { full_name: 'A' }, 'an unknown user'),
  json(422, `PATCH ${USERS}42`, { is_active: 'no', email: 'none' }, 'path and body'),

  // Deletions.
  request(412, `DELETE ${ADA}`, 'another version', { fields: [['If-Match', 'W/"5"']] }),
  request(204, `DELETE ${ADA}`, 'the version', { fields: [['If-Match', '"5"']] }),
  request(422, `DELETE ${USERS}42`, 'an id that is none'),

  // Changes.
  request(200, `GET ${USERS}changes`, 'all changes', { as: 'reader' }),
  request(200, `GET ${USERS}changes/?limit=2&exclude_actor=nobody&x=1`, 'the first changes'),
  request(200, `HEAD ${USERS}changes?cursor=now&limit=0&wait=20`, 'the end of the changes'),
  request(200, `GET ${USERS}changes?cursor=now&wait=1`, 'no news', {
    fields: [['Accept', 'application/cloudevents-batch+json']],
  }),
  request(200, `GET ${ADA}/changes?limit=1`, 'the changes of a user who is gone'),
  request(404, `GET ${UNKNOWN}/changes`, 'the changes of nobody'),
  request(410, `GET ${USERS}changes?cursor=Ljk5OTk5OQ`, 'a cursor beyond the last change'),
  request(422, `GET ${USERS}changes?cursor=abc&limit=0&wait=21&exclude_actor=`, 'no value that is allowed'),
  request(204, `OPTIONS ${ADA}/changes`, 'OPTIONS of the changes of a user', { as: 'nobody' }),

  // Paths and methods without an operation.
  request(204, `OPTIONS ${USERS}50%20/`, 'OPTIONS of a user', { as: 'nobody' }),
  request(204, `OPTIONS ${USERS}batch/`, 'OPTIONS of the batch', { as: 'nobody' }),
  request(405, `POST ${USERS}42`, 'another method of a user'),
  request(405, `GET ${USERS}batch`, 'another method of the batch, which a user has', { as: 'nobody' }),
  request(405, `HEAD ${USERS}batch/?limit=1`, 'HEAD of the batch', { as: 'nobody' }),
  json(405, `PATCH ${USERS}batch/`, '{', 'another method of the batch, with a slash'),
  request(405, `DELETE ${USERS}batch`, 'another method of the batch, which deletes users', { as: 'reader' }),
  request(405, `PUT ${USERS}batch`, 'another method of the batch, which nothing has'),
  request(404, 'GET /api/v1/users//', 'an empty segment'),
  request(404, 'GET /health#fragment', 'a path with a fragment'),
  request(400, `GET ${USERS}%E0%A4`, 'a path that is not UTF-8'),
  request(400, `GET ${USERS}100%`, 'a path with a percent sign'),
];

/** When the identity provider is away. */
export const withoutKeys: readonly Case[] = [
  request(503, `GET ${UNKNOWN}`, 'a token of a key that cannot be fetched', {
    authorization: 'Bearer {foreign}',
  }),
  request(404, `GET ${UNKNOWN}`, 'a token of a known key'),
];

/** When the table of users has other columns, which no deployment should ever see. */
export const withBrokenTable: readonly Case[] = [
  request(500, `GET ${USERS}`, 'a defect'),
  create(500, { email: 'late@example.com' }, 'a defect of create'),
];

/** When PostgreSQL is away. */
export const withoutDatabase: readonly Case[] = [
  request(503, `GET ${USERS}`, 'the list'),
  request(503, `GET ${UNKNOWN}`, 'a user'),
  create(503, { email: 'later@example.com' }, 'create'),
  json(503, `POST ${BATCH}`, PAIR, 'a batch'),
  request(503, `GET ${USERS}changes`, 'the changes'),
  request(503, 'GET /ready', 'ready', { as: 'nobody' }),
  request(200, 'GET /health', 'health', { as: 'nobody' }),
];
