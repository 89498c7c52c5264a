import { randomUUID } from 'node:crypto';
import { differencesFromDocument, differs, PROBLEMS } from './document.mjs';

export const USERS = '/api/v1/users/';
export const CHANGES = `${USERS}changes`;
export const UNKNOWN = `${USERS}00000000-0000-0000-0000-000000000000`;

/** In milliseconds. A request that waits for changes ends earlier, too. */
const TIMEOUT_MS = 30_000;

/** No result is possible: the deployment is unreachable, or there is no token. */
export class CannotJudge extends Error {}

/** A response differs from the expected one: one line per difference. */
export class Mismatch extends Error {
  constructor(differences) {
    super(differences.join('; '));
    this.differences = differences;
  }
}

/** @throws {Mismatch} with `text`, unless `condition` is true */
export function demand(condition, text) {
  if (!condition) throw new Mismatch([text]);
}

/** @throws {Mismatch} unless the two are equal as JSON */
export function same(value, expected, place) {
  const found = differs(value, expected, place);
  if (found.length > 0) throw new Mismatch(found);
}

/** Compares values that another caller can change in between. The check fails only at its third failure. */
export const steadily = (compare) => compare().catch(compare).catch(compare);

/** The deployment responds, but not correctly. */
const SPOKEN = /^(ECONNRESET|EPIPE|HPE_\w+|UND_ERR_(SOCKET|HEADERS_TIMEOUT|BODY_TIMEOUT|RES\w+))$/;

/** Whether nothing listens there, or this machine cannot connect. */
export function isUnreachable(error) {
  return error instanceof TypeError && !SPOKEN.test(error.cause?.code ?? '');
}

/** Internal details of the service, which must not be in a refusal. */
const INSIDE =
  /\b(select|insert into|delete from|node_modules|postgres|ECONN\w+|SQLSTATE)\b|\bat .*:\d+:\d+/i;
const UUID_4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/**
 * Sends requests to the deployment: `ask` demands a documented response with a status or the code of a problem, and
 * returns it; `send` returns any response. Both: `request` (for the report), `status`, `headers` (lower case), `body`
 * (parsed if it is JSON, otherwise text), `location`, and `next`, the targets of Location and of the link to the next page.
 */
export function createDeployment({ base, requestIdHeader, interrupted, token: usual }) {
  const place = base.origin + base.prefix;

  async function send(method, target, { token = usual, headers = {}, json, body, id = randomUUID() } = {}) {
    interrupted?.throwIfAborted();
    const fields = new Headers(headers);
    if (token) fields.set('authorization', `Bearer ${token}`);
    if (id) fields.set(requestIdHeader, id);
    if (json !== undefined && !fields.has('content-type')) fields.set('content-type', 'application/json');
    const content = json === undefined ? body : new TextEncoder().encode(JSON.stringify(json));
    const response = await fetch(place + target, {
      method,
      headers: fields,
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(content !== undefined && { body: content }),
    });
    const received = {
      request: `${method} ${target}`,
      method,
      path: target.split('?', 1)[0],
      status: response.status,
      headers: Object.fromEntries(response.headers),
      sentId: id,
      token,
      get location() {
        return this.headers.location && follow(this.headers.location, this);
      },
      get next() {
        const [, link] = /^<([^>]+)>; rel="next"$/.exec(this.headers.link ?? '') ?? [];
        return link && follow(link, this);
      },
    };
    return Object.assign(received, contentOf(await response.arrayBuffer(), received));
  }

  /** The target of a reference, resolved as a client does. @throws {Mismatch} if it is outside of the service */
  function follow(reference, { request, path }) {
    const { href } = new URL(reference, place + path);
    const outside = `outside of ${place}/ (see "prefix" in infra/docs/operate.md)`;
    demand(href.startsWith(`${place}/`), `${request}: ${reference} leads to ${href}, ${outside}`);
    return href.slice(place.length);
  }

  /** `is` is the body, `has` are headers, and `errors` the places of the faults (`#/…`, `A…` or a parameter). */
  async function ask(method, target, expected, { is, has = {}, errors, ...options } = {}) {
    const response = await send(method, target, options);
    const { status, headers, body, request } = response;
    const problem = PROBLEMS.get(expected);
    const found = differs(status, problem?.status ?? expected, 'the status');
    if (found.length === 0) found.push(...differencesFromDocument(response));
    found.push(...differencesOfEvery(response));
    if (problem && method !== 'HEAD') found.push(...problemDifferences(expected, problem, response, errors));
    if (is !== undefined) found.push(...differs(body, is, 'the body'));
    for (const [name, value] of Object.entries(has)) found.push(...differs(headers[name], value, name));
    if (found.length > 0) throw new Mismatch(found.map((line) => `${request} → ${status}: ${line}`));
    return response;
  }

  /** Every response has the request ID, or a new one, and nothing of the token. */
  function differencesOfEvery({ headers, text, sentId, token }) {
    const expected = sentId ?? ((value) => UUID_4.test(value));
    const found = differs(headers[requestIdHeader], expected, `the header ${requestIdHeader}`);
    const isShown = token && (JSON.stringify(headers) + text).includes(token);
    return isShown ? [...found, 'the response has the token in it'] : found;
  }

  function problemDifferences(code, { title }, { body, path, status }, errors) {
    const { detail, instance } = body;
    const instances = [path, base.prefix + path];
    return [
      ...differs(body.type, `urn:svc:error:${code}`, 'type'),
      ...differs(body.title, title, 'title'),
      ...differs(body.status, status, 'status'),
      ...differs(instances.includes(instance) ? path : instance, path, 'instance'),
      ...(status === 401 || status === 403 ? differs(detail, title, 'detail') : []),
      ...(INSIDE.test(JSON.stringify(body)) ? ['the problem shows the inside of the service'] : []),
      ...differs(errors && placesIn(body.errors), errors?.toSorted(), 'the places of `errors`'),
    ];
  }

  return { ask, send };
}

/** Each place once, in order. */
const placesIn = (errors = []) =>
  [...new Set(errors.map(({ pointer, parameter, header }) => pointer ?? parameter ?? header))].sort();

/** The text of a body, and the body as JSON if its type is. */
function contentOf(bytes, { request, status, headers }) {
  const isJson = /^application\/([\w.-]+\+)?json\b/.test(headers['content-type'] ?? '');
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, body: isJson && text !== '' ? JSON.parse(text) : text };
  } catch ({ message }) {
    throw new Mismatch([
      `${request} → ${status}: the body is not UTF-8 or not JSON: ${message.slice(0, 200)}`,
    ]);
  }
}
