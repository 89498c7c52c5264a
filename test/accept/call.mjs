import { demand, Mismatch } from './expect.mjs';

/** In milliseconds. A request that waits for changes ends earlier, too. */
const TIMEOUT = 30_000;

/** No result is possible: the deployment is unreachable, or there is no token. */
export class CannotJudge extends Error {}

/** The deployment responds, but not correctly. */
const SPOKEN = /^(ECONNRESET|EPIPE|HPE_\w+|UND_ERR_(SOCKET|HEADERS_TIMEOUT|BODY_TIMEOUT|RES\w+))$/;

/** Whether nothing listens there, or this machine cannot connect. */
export function isUnreachable(error) {
  return error instanceof TypeError && !SPOKEN.test(error.cause?.code ?? '');
}

/**
 * Sends requests to the deployment, and returns complete responses: `request` (for the report), `path`, `status`,
 * `headers` (lower case), `body` (parsed if it is JSON, otherwise text), `sentId` (the request ID of the request) and
 * `follow`, which resolves a reference in the response as a client does, and returns its target.
 */
export function createCall({ base, requestIdHeader, interrupted }) {
  return async function call(method, target, { token, headers = {}, json, body } = {}) {
    interrupted?.throwIfAborted();
    const fields = new Headers(headers);
    if (token) fields.set('authorization', `Bearer ${token}`);
    if (json !== undefined && !fields.has('content-type')) fields.set('content-type', 'application/json');
    const content = json === undefined ? body : new TextEncoder().encode(JSON.stringify(json));
    const path = base.prefix + target;
    const response = await fetch(base.origin + path, {
      method,
      headers: fields,
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT),
      ...(content !== undefined && { body: content }),
    });
    const answer = {
      request: `${method} ${target}`,
      method,
      path: path.split('?', 1)[0],
      status: response.status,
      headers: Object.fromEntries(response.headers),
      sentId: fields.get(requestIdHeader) ?? undefined,
      token,
      follow(reference) {
        const { href } = new URL(reference, base.origin + path);
        const isWithin = href.startsWith(`${base.origin}${base.prefix}/`);
        const place = `${base.origin}${base.prefix}`;
        demand(
          isWithin,
          `${method} ${target}: ${reference} leads to ${href}, outside of ${place}/ (see "prefix" in infra/operate.md)`,
        );
        return href.slice(place.length);
      },
    };
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { ...answer, text: textOf(bytes, answer), body: bodyOf(bytes, answer) };
  };
}

function textOf(bytes, { request, status }) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Mismatch([`${request} → ${status}: the body is not UTF-8`]);
  }
}

function bodyOf(bytes, answer) {
  const text = textOf(bytes, answer);
  if (!/^application\/([\w.-]+\+)?json\b/.test(answer.headers['content-type'] ?? '') || text === '')
    return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Mismatch([`${answer.request} → ${answer.status}: the body is not JSON: ${text.slice(0, 100)}`]);
  }
}
