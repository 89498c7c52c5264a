import { anything, differences, Mismatch } from './expect.mjs';

/** The refusals of the API: code, status and title. */
const REFUSALS = {
  unauthorized_error: [401, 'Unauthorized'],
  forbidden_error: [403, 'Forbidden'],
  not_found_error: [404, 'Not Found'],
  method_not_allowed_error: [405, 'Method Not Allowed'],
  conflict_error: [409, 'Conflict'],
  gone_error: [410, 'Gone'],
  precondition_failed_error: [412, 'Precondition Failed'],
  payload_too_large_error: [413, 'Payload Too Large'],
  unsupported_media_type_error: [415, 'Unsupported Media Type'],
  validation_error: [422, 'Unprocessable Entity'],
  idempotency_key_reused_error: [422, 'Unprocessable Entity'],
  precondition_required_error: [428, 'Precondition Required'],
};

export const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const UUID_4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
export const TAG = /^"[1-9]\d*"$/;
export const ACCEPT_PATCH = 'application/json, application/merge-patch+json';

/** Internal details of the service, which must not be in a refusal. */
const INSIDE =
  /\b(select|insert into|delete from|node_modules|postgres|ECONN\w+|SQLSTATE)\b|\bat .*:\d+:\d+/i;

export const text = anything('‹some text›', (value) => typeof value === 'string' && value !== '');

/** A user as in a response. `fields` are known. */
export const user = (fields = {}) => ({
  id: UUID,
  email: text,
  full_name: anything('‹a string or null›', (value) => value === null || typeof value === 'string'),
  is_active: anything('‹a boolean›', (value) => typeof value === 'boolean'),
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
  ...fields,
});

/** A list of complete users. */
export const users = anything(
  '‹a list of whole users›',
  (value) => Array.isArray(value) && value.every((one) => differences(one, user()).length === 0),
);

/**
 * The checks of complete responses. Every response has a request ID (that of the request, otherwise a new UUID),
 * `X-Content-Type-Options: nosniff`, and nothing of the token.
 */
export function createAnswers({ base, requestIdHeader }) {
  /** @throws {Mismatch} unless the response has this status, these headers and this body */
  function answers(answer, { status, headers = {}, body }) {
    const isBodiless = answer.method === 'HEAD' || status === 204 || status === 304;
    const found = [
      ...differences(answer.status, status, 'the status'),
      ...headerDifferences(answer, headers),
      ...differences(answer.body, isBodiless ? '' : body, 'the body'),
    ];
    if (found.length > 0) throw new Mismatch(found.map((line) => `${answer.request}: ${line}`));
    return answer;
  }

  function headerDifferences(answer, headers) {
    const expected = {
      'x-content-type-options': 'nosniff',
      [requestIdHeader]: answer.sentId ?? UUID_4,
      ...headers,
    };
    const found = Object.entries(expected).flatMap(([name, value]) =>
      differences(shown(name, answer), value, `the header ${name}`),
    );
    const everything = JSON.stringify(answer.headers) + answer.text;
    if (answer.token && everything.includes(answer.token)) found.push('the answer has the token in it');
    if ([429, 503].includes(answer.status) && answer.headers['retry-after'] === undefined)
      found.push('the header retry-after: missing, although the client is to wait');
    return found;
  }

  /** A successful user operation. */
  function succeeds(answer, status, body, headers = {}) {
    const type = status === 204 || status === 304 ? undefined : 'application/json; charset=utf-8';
    const usual = { 'content-type': type, 'cache-control': status === 204 ? anyText : 'private, no-cache' };
    return answers(answer, { status, headers: { ...usual, ...headers }, body });
  }

  /** A refusal: the complete problem document, and the headers that belong to it. */
  function refuses(answer, code, { headers = {}, errors, detail } = {}) {
    const [status, title] = REFUSALS[code];
    const isBare = code === 'unauthorized_error' || code === 'forbidden_error';
    const problem = {
      type: `urn:svc:error:${code}`,
      title,
      status,
      detail: isBare ? title : (detail ?? discreet),
      instance: anything('‹the path›', (value) => [answer.path, unmounted(answer.path)].includes(value)),
      ...(errors && { errors: faults(errors) }),
    };
    const type = { 'content-type': 'application/problem+json', 'cache-control': 'no-store' };
    const challenge = code === 'unauthorized_error' ? { 'www-authenticate': 'Bearer' } : {};
    return answers(answer, { status, headers: { ...type, ...challenge, ...headers }, body: problem });
  }

  /** The path without the base path, which the service may know. */
  const unmounted = (path) => (path?.startsWith(base.prefix) ? path.slice(base.prefix.length) : path);

  const shown = (name, { headers: { [name]: value }, follow }) =>
    name === 'location' && value !== undefined ? follow(value) : value;

  return { answers, succeeds, refuses };
}

const anyText = anything('‹any›', () => true);

const discreet = anything(
  '‹a sentence that says nothing of the inside›',
  (value) => typeof value === 'string' && value !== '' && !INSIDE.test(value),
);

/** The places of the faults in any order, each once or more: pointers (`#…`), header fields (`A…`) and parameters. */
function faults(places) {
  const expected = places.map(placeOf).sort();
  return anything(`‹the faults ${expected.join(', ')}, each with a detail›`, (value) => {
    if (!Array.isArray(value)) return false;
    const found = value.map(({ detail, ...place }) => discreet(detail) && JSON.stringify(place));
    return JSON.stringify([...new Set(found)].sort()) === JSON.stringify(expected);
  });
}

function placeOf(place) {
  const kind = place.startsWith('#') ? 'pointer' : /^[A-Z]/.test(place) ? 'header' : 'parameter';
  return JSON.stringify({ [kind]: place });
}
