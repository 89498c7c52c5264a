import { isUtf8 } from 'node:buffer';
import * as z from 'zod';
import type { HttpResponse } from '../../stage/raw-request.ts';
import type { HttpExchange } from './exchange.ts';

/** A rule for the responses of an origin server. */
export type HttpRule = {
  readonly source: string;
  readonly says: string;
  /** What breaks the rule; empty if nothing does. A rule for a socket finds nothing in the result of a function. */
  readonly find: (exchange: HttpExchange) => readonly string[];
};

const TOKEN_TEXT = "[!#$%&'*+.^_`|~\\dA-Za-z-]+";

/** RFC 9110 section 5.6.2. */
const TOKEN = new RegExp(`^${TOKEN_TEXT}$`);

/** RFC 9110 section 5.5, without obs-text, which a sender should not generate. */
const VISIBLE = /^[\x21-\x7e](?:[\t \x21-\x7e]*[\x21-\x7e])?$/;

/** RFC 9110 section 8.3.1. */
const MEDIA_TYPE = new RegExp(
  `^${TOKEN_TEXT}/${TOKEN_TEXT}(?:[ \\t]*;[ \\t]*${TOKEN_TEXT}=(?:${TOKEN_TEXT}|"[^"\\\\]*"))*$`,
);

/** RFC 9110 section 8.8.3. */
const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

const ESCAPE = '%[\\dA-Fa-f]{2}';
const PCHAR = `(?:[\\w.~!$&'()*+,;=:@-]|${ESCAPE})`;

/** RFC 3986 section 4.1. */
const URI_REFERENCE = new RegExp(
  `^(?:[A-Za-z][A-Za-z\\d+.-]*:)?(?://(?:[\\w.~!$&'()*+,;=:@[\\]-]|${ESCAPE})*(?=[/?#]|$))?(?:${PCHAR}|/)*(?:\\?(?:${PCHAR}|[/?])*)?(?:#(?:${PCHAR}|[/?])*)?$`,
);

type Form = { readonly test: (value: string) => boolean };

const listOf = (member: Form): Form => ({
  test: (value) => splitList(value).every((one) => member.test(one)),
});

/** The fields of this service, and the forms of their values. Any other field needs a line here first. */
const FIELDS: Readonly<Record<string, readonly [form: Form, source: string]>> = {
  'accept-patch': [listOf(MEDIA_TYPE), 'RFC 5789 section 3.1'],
  allow: [{ test: isMethodList }, 'RFC 9110 section 10.2.1'],
  // No directive lets a shared cache store a response to a request with Authorization (RFC 9111 section 3.5).
  'cache-control': [/^(private, no-cache|no-store|no-cache)$/, 'RFC 9111 section 5.2'],
  connection: [/^(close|keep-alive)$/, 'RFC 9110 section 7.6.1'],
  'content-length': [/^\d+$/, 'RFC 9110 section 8.6'],
  'content-security-policy': [VISIBLE, 'Content Security Policy Level 3'],
  'content-type': [MEDIA_TYPE, 'RFC 9110 section 8.3.1'],
  date: [{ test: (value) => new Date(value).toUTCString() === value }, 'RFC 9110 section 5.6.7'],
  etag: [ENTITY_TAG, 'RFC 9110 section 8.8.3'],
  'idempotency-replayed': [/^true$/, 'decisions'],
  'keep-alive': [/^timeout=\d+$/, 'RFC 2068 section 19.7.1'],
  link: [{ test: isLinkToNext }, 'RFC 8288 section 3'],
  location: [URI_REFERENCE, 'RFC 9110 section 10.2.2'],
  'referrer-policy': [TOKEN, 'Referrer Policy section 4.1'],
  'retry-after': [/^\d+$/, 'RFC 9110 section 10.2.3'],
  'transfer-encoding': [/^chunked$/, 'RFC 9112 section 6.1'],
  'www-authenticate': [/^Bearer( error="[a-z_]+", scope="[\w.]+")?$/, 'RFC 6750 section 3'],
  'x-content-type-options': [/^nosniff$/, 'Fetch section 3.6'],
  'x-request-id': [VISIBLE, 'RFC 9110 section 5.5'],
};

/** Fields of a connection (RFC 9110 section 7.6.1), and those that differ from message to message. */
const OF_THE_CONNECTION = ['connection', 'keep-alive', 'transfer-encoding'];
const OF_THE_MESSAGE = [...OF_THE_CONNECTION, 'date', 'x-request-id', 'content-length'];

/** Fields of a 304 if the 200 has them (RFC 9110 section 15.4.5). Date has a rule of its own. */
const FIELDS_OF_304 = ['cache-control', 'etag'];

/** Statuses that a cache may store without permission (RFC 9110 section 15.1), and 304. */
const STORABLE = [200, 203, 204, 206, 300, 301, 304, 308, 404, 405, 410, 414, 501];

/** Statuses without content, whatever the method (RFC 9110 section 6.4.1). */
const EMPTY_STATUSES = [204, 304];

/** Fields that a response must have (true) or must not have (false), and otherwise may have. */
const PRESENCE: Readonly<
  Record<string, readonly [source: string, isNeeded: (exchange: HttpExchange) => boolean | undefined]>
> = {
  allow: [
    'RFC 9110 sections 9.3.7 and 15.5.6',
    ({ request: { method }, response: { status } }) =>
      status === 405 || (method === 'OPTIONS' && status < 300) || undefined,
  ],
  'accept-patch': [
    'RFC 5789 sections 2.2 and 3.1',
    ({ request: { method }, response }) =>
      (method === 'OPTIONS' && /PATCH/.test(fieldOf(response, 'allow') ?? '')) ||
      (method === 'PATCH' && response.status === 415) ||
      undefined,
  ],
  'cache-control': [
    'RFC 9111 section 4.2.2',
    ({ request: { method }, response: { status } }) =>
      (['GET', 'HEAD'].includes(method) && STORABLE.includes(status)) || undefined,
  ],
  'content-length': ['RFC 9110 section 8.6', ({ response }) => (response.status === 204 ? false : undefined)],
  'content-type': [
    'RFC 9110 sections 8.3 and 15.4.5',
    ({ response: { status, content } }) =>
      EMPTY_STATUSES.includes(status) ? false : content.length > 0 || undefined,
  ],
  date: ['RFC 9110 section 6.6.1', ({ response }) => response.onSocket !== undefined || undefined],
  location: [
    'RFC 9110 sections 15.3.2 and 15.4',
    // A list is of several resources, of which none is the primary one.
    ({ response }) =>
      [301, 302, 303, 307, 308].includes(response.status) ||
      (response.status === 201 && !Array.isArray(parseJson(response))) ||
      undefined,
  ],
  'transfer-encoding': [
    'RFC 9112 sections 6.1 and 6.2',
    ({ response }) =>
      response.status === 204 || fieldOf(response, 'content-length') !== undefined ? false : undefined,
  ],
  'www-authenticate': [
    'RFC 9110 section 15.5.2',
    ({ response }) => [401, 403].includes(response.status) || undefined,
  ],
};

/** All rules, by name. */
export const RULES: Readonly<Record<string, HttpRule>> = {
  'status line': {
    source: 'RFC 9112 section 4',
    says: 'The status line has the version, three digits and a reason of visible characters.',
    find: ({ response: { onSocket } }) =>
      onSocket && !/^HTTP\/1\.1 [1-5]\d\d [\t\x20-\x7e]*$/.test(onSocket.statusLine)
        ? [`the line ${onSocket.statusLine}`]
        : [],
  },
  'field forms': {
    source: 'RFC 9110 sections 5.1, 5.3 and 5.5',
    says: 'A field is one of this service, has the form of its value, and occurs once.',
    find: ({ response }) =>
      response.fields.flatMap(([name, value], index) => {
        const [form, source] = FIELDS[name.toLowerCase()] ?? [];
        const isRepeated = response.fields.findIndex(([one]) => isSameName(one, name)) < index;
        return form?.test(value) && !isRepeated
          ? []
          : [`${name}: ${value} (${source ?? 'not in the table'})`];
      }),
  },
  presence: {
    source: 'RFC 9110, RFC 9111, RFC 9112 and RFC 5789',
    says: 'A response has the fields that its status or method requires, and none that it forbids.',
    find: (exchange) =>
      Object.entries(PRESENCE).flatMap(([name, [source, isNeeded]]) => {
        const isPresent = fieldOf(exchange.response, name) !== undefined;
        return (isNeeded(exchange) ?? isPresent) === isPresent ? [] : [`${name} (${source})`];
      }),
  },
  'connection fields': {
    source: 'RFC 9110 section 7.6.1',
    says: 'Keep-Alive comes with its connection option; the result of a function has no field of a connection.',
    find: ({ response }) => {
      if (!response.onSocket)
        return OF_THE_CONNECTION.filter((name) => fieldOf(response, name) !== undefined);
      const isListed = fieldOf(response, 'connection') === 'keep-alive';
      return fieldOf(response, 'keep-alive') !== undefined && !isListed
        ? ['Keep-Alive without its option']
        : [];
    },
  },
  persistence: {
    source: 'RFC 9112 sections 9.3 and 9.6',
    says: 'A connection persists, unless the response has the connection option close, or the request had it.',
    find: ({ request, response }) => {
      if (!response.onSocket?.afterwards) return [];
      const isClosing = [response, request].some((message) => fieldOf(message, 'connection') === 'close');
      const { afterwards } = response.onSocket;
      if (isClosing) return afterwards === 'a response' ? ['open after close'] : [];
      return afterwards === 'the end' ? ['closed without close'] : [];
    },
  },
  framing: {
    source: 'RFC 9112 section 6.3',
    says: 'A response ends where it says, and says where it ends.',
    find: ({ request, response }) => {
      if (!response.onSocket) return [];
      const saysItsLength =
        hasNoContent(request.method, response.status) ||
        fieldOf(response, 'content-length') !== undefined ||
        fieldOf(response, 'transfer-encoding') !== undefined;
      const isFollowed = response.onSocket.afterwards === 'other bytes';
      return [...(saysItsLength ? [] : ['no length']), ...(isFollowed ? ['bytes after the end'] : [])];
    },
  },
  'content length': {
    source: 'RFC 9110 section 8.6',
    says: 'Content-Length is a number of octets: those of the content or, with HEAD and 304, those of a GET.',
    find: ({ request, response, plain }) => {
      const length = fieldOf(response, 'content-length');
      if (length === undefined || response.status === 204) return [];
      const like = hasNoContent(request.method, response.status) ? plain : response;
      return !like || Number(length) === like.content.length
        ? []
        : [`${length} instead of ${like.content.length}`];
    },
  },
  'no content': {
    source: 'RFC 9110 sections 9.3.2, 15.3.5 and 15.4.5',
    says: 'A response to HEAD, a 204 and a 304 have no content.',
    find: ({ request, response }) =>
      hasNoContent(request.method, response.status) && response.content.length > 0
        ? [`${response.content.length} octets`]
        : [],
  },
  head: {
    source: 'RFC 9110 section 9.3.2',
    says: 'A response to HEAD has the status and the fields of the response to GET.',
    find: ({ request, response, plain }) => {
      if (request.method !== 'HEAD' || !plain || [304, 412].includes(response.status)) return [];
      const names = Object.keys(FIELDS).filter((name) => !OF_THE_MESSAGE.includes(name));
      const other = names.filter((name) => fieldOf(response, name) !== fieldOf(plain, name));
      return response.status === plain.status ? other : [`${response.status} instead of ${plain.status}`];
    },
  },
  'not modified': {
    source: 'RFC 9110 section 15.4.5',
    says: 'A 304 has the fields of a 200 that caches need.',
    find: ({ response, plain }) =>
      plain && response.status === 304
        ? FIELDS_OF_304.filter((name) => fieldOf(response, name) !== fieldOf(plain, name))
        : [],
  },
  'problem type': {
    source: 'RFC 9457 section 3, RFC 9110 sections 15.5 and 15.6',
    says: 'An error explains itself by a problem document, and nothing else has its media type.',
    find: ({ request, response }) => {
      const isProblem = mediaTypeOf(response) === 'application/problem+json';
      if (response.status < 400) return isProblem ? ['a problem without an error'] : [];
      if (!isProblem) return [mediaTypeOf(response) || 'no media type'];
      return request.method !== 'HEAD' && response.content.length === 0 ? ['no content'] : [];
    },
  },
  'problem members': {
    source: 'RFC 9457 sections 3.1 and 3.2',
    says: 'The members of a problem have their types and forms, and its status is the status code.',
    find: ({ request, response }) => {
      if (mediaTypeOf(response) !== 'application/problem+json' || response.content.length === 0) return [];
      return problemFaults(parseJson(response), response.status, request.target);
    },
  },
};

/** What breaks a rule: the name of the rule, its source, and the fault. */
export function lint(exchange: HttpExchange): readonly string[] {
  return Object.entries<HttpRule>(RULES).flatMap(([name, { source, find }]) =>
    find(exchange).map((fault) => `${name} (${source}): ${fault}`),
  );
}

const isSameName = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** The value of a field, with repeated lines joined (RFC 9110 section 5.2). */
export function fieldOf({ fields }: Pick<HttpResponse, 'fields'>, wanted: string): string | undefined {
  const values = fields.filter(([name]) => isSameName(name, wanted)).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(', ');
}

/** The members of a list without quoted texts, RFC 9110 section 5.6.1. */
function splitList(value: string): readonly string[] {
  return value.split(',').flatMap((member) => member.trim() || []);
}

function isMethodList(value: string): boolean {
  const methods = splitList(value);
  const isRepeated = new Set(methods).size < methods.length;
  return (
    !isRepeated &&
    methods.every((one) => TOKEN.test(one)) &&
    methods.includes('HEAD') === methods.includes('GET')
  );
}

function isLinkToNext(value: string): boolean {
  const [, target] = /^<([^<>]*)>; rel="next"$/.exec(value) ?? [];
  return target !== undefined && URI_REFERENCE.test(target);
}

const hasNoContent = (method: string, status: number) => method === 'HEAD' || EMPTY_STATUSES.includes(status);

function mediaTypeOf(response: HttpResponse): string {
  return (fieldOf(response, 'content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

/** Undefined if the content is not JSON. */
function parseJson({ content }: HttpResponse): unknown {
  try {
    return isUtf8(content) ? JSON.parse(content.toString()) : undefined;
  } catch {
    return undefined;
  }
}

/** A target that is not a URI is returned as it was sent. */
function problemFaults(problem: unknown, status: number, target: string): readonly string[] {
  const isAnyPath = !URI_REFERENCE.test(target.split('?')[0] ?? '');
  const reference = z.string().regex(URI_REFERENCE);
  const members = z.object({
    type: reference,
    title: z.string(),
    status: z.literal(status),
    detail: z.string(),
    instance: isAnyPath ? z.string() : reference,
  });
  const isNamed = Object.keys(problem ?? {}).every((name) => /^[A-Za-z]\w{2,}$/.test(name));
  return isNamed && members.safeParse(problem).success ? [] : [JSON.stringify(problem)];
}
