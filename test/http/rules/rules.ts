import { isUtf8 } from 'node:buffer';
import type { HttpExchange, HttpResponse } from './exchange.ts';
import {
  CHALLENGE,
  DIRECTIVE,
  ENTITY_TAG,
  FIELD_VALUE,
  IMF_FIXDATE,
  isUriReference,
  LINK,
  MEDIA_TYPE,
  parseParameters,
  splitList,
  TOKEN,
} from './grammar.ts';

/** A rule for the responses of an origin server. */
export type HttpRule = {
  readonly source: string;
  readonly says: string;
  /** What breaks the rule; empty if nothing does. A rule for a socket finds nothing in the result of a function. */
  readonly find: (exchange: HttpExchange) => readonly string[];
};

/** Fields whose value is a list, and which may therefore be repeated (RFC 9110 section 5.3). */
const LIST_FIELDS = [
  'accept-patch',
  'allow',
  'cache-control',
  'connection',
  'content-encoding',
  'content-language',
  'link',
  'transfer-encoding',
  'upgrade',
  'vary',
  'via',
  'www-authenticate',
];

/** Fields of requests that have no meaning in a response. */
const REQUEST_FIELDS =
  /^(authorization|cookie|expect|from|host|idempotency-key|if-.*|max-forwards|origin|proxy-authorization|range|referer|te|user-agent)$/;

/** Fields for one connection (RFC 9110 section 7.6.1). */
const CONNECTION_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
];

/** Fields of a 304 if the 200 has them (RFC 9110 section 15.4.5). Date has a rule of its own. */
const FIELDS_OF_304 = ['cache-control', 'content-location', 'etag', 'expires', 'vary'];

/** Statuses that a cache may store without permission (RFC 9110 section 15.1). */
const HEURISTIC = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501];

/** Directives of responses with a number of seconds, and those without an argument (RFC 9111 section 5.2.2). */
const SECONDS_DIRECTIVES = ['max-age', 's-maxage', 'stale-while-revalidate', 'stale-if-error'];
const BARE_DIRECTIVES = [
  'immutable',
  'must-revalidate',
  'must-understand',
  'no-store',
  'no-transform',
  'proxy-revalidate',
  'public',
];
const FIELD_DIRECTIVES = ['no-cache', 'private'];

/** Relation types of the IANA registry that a collection may use. Any other type must be a URI. */
const RELATION_TYPES =
  /^(alternate|canonical|collection|describedby|edit|first|item|last|next|prev|self|service-desc|service-doc|status|up)$/;

/** In milliseconds: how long a response may be under way. */
const MAX_AGE_MS = 10_000;

/** Statuses without content, whatever the method (RFC 9110 section 6.4.1). */
const EMPTY_STATUSES = [204, 304];

/** All rules, by name. */
export const RULES = {
  'status line': {
    source: 'RFC 9112 section 4',
    says: 'The status line has the version, three digits and a reason of visible characters.',
    find: ({ response: { onSocket } }) =>
      onSocket && !/^HTTP\/1\.1 [1-5]\d\d [\t\x20-\x7e]*$/.test(onSocket.statusLine)
        ? [`the line ${onSocket.statusLine}`]
        : [],
  },
  'field names': {
    source: 'RFC 9110 section 5.1',
    says: 'A field name is a token.',
    find: ({ response }) => response.fields.map(([name]) => name).filter((name) => !TOKEN.test(name)),
  },
  'field values': {
    source: 'RFC 9110 section 5.5',
    says: 'A field value has visible ASCII, and white space within only.',
    find: ({ response }) =>
      response.fields.flatMap(([name, value]) => (FIELD_VALUE.test(value) ? [] : [`${name}: ${value}`])),
  },
  'single fields': {
    source: 'RFC 9110 section 5.3',
    says: 'Only a field whose value is a list is repeated.',
    find: ({ response }) => {
      const names = response.fields.map(([name]) => name.toLowerCase());
      return names.filter((name, index) => names.indexOf(name) < index && !LIST_FIELDS.includes(name));
    },
  },
  'request fields': {
    source: 'RFC 9110 sections 7.2, 10.1 and 13.1',
    says: 'A response has no field that only requests have.',
    find: ({ response }) =>
      response.fields.map(([name]) => name).filter((name) => REQUEST_FIELDS.test(name.toLowerCase())),
  },
  'connection fields': {
    source: 'RFC 9110 section 7.6.1',
    says: 'Connection lists tokens, and each field for one connection; the result of a function has none.',
    find: ({ response }) => {
      const options = listOf(response, 'connection').map((option) => option.toLowerCase());
      const present = CONNECTION_FIELDS.filter((name) => fieldOf(response, name) !== undefined);
      if (!response.onSocket) return present;
      const unlisted = present.filter(
        (name) => !['connection', 'transfer-encoding', ...options].includes(name),
      );
      return [...unlisted, ...options.filter((option) => !TOKEN.test(option))];
    },
  },
  persistence: {
    source: 'RFC 9112 sections 9.3 and 9.6',
    says: 'A connection persists, unless the response has the connection option close, or the request had it.',
    find: ({ request, response }) => {
      if (!response.onSocket?.afterwards) return [];
      const isClosing = [response.fields, request.fields].some((fields) =>
        listOf({ fields }, 'connection').some((option) => option.toLowerCase() === 'close'),
      );
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
  'transfer coding': {
    source: 'RFC 9112 sections 6.1 and 6.2',
    says: 'Transfer-Encoding is neither in a 204 nor beside Content-Length.',
    find: ({ response }) => {
      if (fieldOf(response, 'transfer-encoding') === undefined) return [];
      const length = fieldOf(response, 'content-length');
      return [...(response.status === 204 ? ['in a 204'] : []), ...(length ? [`beside ${length}`] : [])];
    },
  },
  'content length': {
    source: 'RFC 9110 section 8.6',
    says: 'Content-Length is a number of octets: those of the content or, with HEAD and 304, those of a GET.',
    find: ({ request, response, plain }) => {
      const length = fieldOf(response, 'content-length');
      if (length === undefined || response.status === 204) return [];
      if (!/^\d+$/.test(length)) return [length];
      const like = hasNoContent(request.method, response.status) ? plain : response;
      return !like || Number(length) === like.content.length
        ? []
        : [`${length} instead of ${like.content.length}`];
    },
  },
  'no content length': {
    source: 'RFC 9110 section 8.6',
    says: 'A 204 has no Content-Length.',
    find: ({ response }) =>
      response.status === 204 ? response.fields.flatMap(fieldNamed('content-length')) : [],
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
      if (request.method !== 'HEAD' || !plain || response.status === 304 || isConditional(request.fields))
        return [];
      // Those of the connection are not of the resource, and those two differ from message to message.
      const names = new Set([...response.fields, ...plain.fields].map(([name]) => name.toLowerCase()));
      for (const name of [...CONNECTION_FIELDS, 'date', 'x-request-id', 'content-length']) names.delete(name);
      const other = [...names].filter((name) => fieldOf(response, name) !== fieldOf(plain, name));
      return response.status === plain.status ? other : [`${response.status} instead of ${plain.status}`];
    },
  },
  'not modified': {
    source: 'RFC 9110 section 15.4.5',
    says: 'A 304 has the fields of a 200 that caches need, and no other metadata of the representation.',
    find: ({ response, plain }) => {
      if (response.status !== 304) return [];
      const missing = FIELDS_OF_304.filter(
        (name) =>
          plain && fieldOf(plain, name) !== undefined && fieldOf(response, name) !== fieldOf(plain, name),
      );
      const more = ['content-type', 'content-encoding', 'content-language', 'content-range', 'location'];
      return [...missing, ...more.filter((name) => fieldOf(response, name) !== undefined)];
    },
  },
  conditions: {
    source: 'RFC 9110 sections 13.1 and 13.2',
    says: 'A read is 304 or 412 if, and only if, its preconditions say so; 412 needs a precondition.',
    find: ({ request, response, plain }) => findIgnoredConditions(request, response, plain),
  },
  'entity tag': {
    source: 'RFC 9110 section 8.8.3',
    says: 'ETag is one entity tag.',
    find: ({ response }) => valuesOf(response, 'etag').filter((value) => !ENTITY_TAG.test(value)),
  },
  dates: {
    source: 'RFC 9110 section 5.6.7',
    says: 'A date is an IMF-fixdate.',
    find: ({ response }) =>
      ['date', 'expires', 'last-modified']
        .flatMap((name) => valuesOf(response, name))
        .filter((value) => !isImfFixdate(value)),
  },
  date: {
    source: 'RFC 9110 section 6.6.1',
    says: 'A response has the Date of its origination.',
    find: ({ response }) => {
      if (!response.onSocket) return [];
      const value = fieldOf(response, 'date');
      if (value === undefined) return ['no Date'];
      const age = response.onSocket.receivedAt - Date.parse(value);
      return Number.isNaN(age) || (age > -1000 && age < MAX_AGE_MS) ? [] : [`an age of ${age} ms`];
    },
  },
  'last modified': {
    source: 'RFC 9110 section 8.8.2.1',
    says: 'Last-Modified is not later than Date.',
    find: ({ response }) => {
      const [modified, date] = ['last-modified', 'date'].map((name) =>
        Date.parse(fieldOf(response, name) ?? ''),
      );
      return Number(modified) > Number(date) ? ['later than Date'] : [];
    },
  },
  allow: {
    source: 'RFC 9110 sections 9.3.7, 10.2.1 and 15.5.6',
    says: 'A 405 and a success of OPTIONS have Allow: methods, HEAD with GET, and not the refused one.',
    find: ({ request: { method }, response }) => {
      const isRefused = response.status === 405;
      const isNeeded = isRefused || (method === 'OPTIONS' && response.status < 300);
      if (fieldOf(response, 'allow') === undefined) return isNeeded ? ['no Allow'] : [];
      const methods = listOf(response, 'allow');
      return [
        ...methods.filter((one, index) => !TOKEN.test(one) || methods.indexOf(one) < index),
        ...(methods.includes('GET') && !methods.includes('HEAD') ? ['GET without HEAD'] : []),
        ...(isNeeded && methods.includes(method) === isRefused ? [`${method} with ${response.status}`] : []),
      ];
    },
  },
  challenge: {
    source: 'RFC 9110 sections 11.2, 11.6.1 and 15.5.2',
    says: 'A 401 has WWW-Authenticate: challenges, each parameter of which occurs once.',
    find: ({ response }) => {
      const challenges = valuesOf(response, 'www-authenticate');
      if (challenges.length === 0) return response.status === 401 ? ['no WWW-Authenticate'] : [];
      return challenges.filter((one) => {
        const names = parseParameters(one.replace(/^\S+/, '')).map(([name]) => name);
        return !CHALLENGE.test(one) || new Set(names).size < names.length;
      });
    },
  },
  'retry after': {
    source: 'RFC 9110 section 10.2.3',
    says: 'Retry-After is a number of seconds or a date.',
    find: ({ response }) =>
      valuesOf(response, 'retry-after').filter((value) => !/^\d+$/.test(value) && !isImfFixdate(value)),
  },
  location: {
    source: 'RFC 9110 sections 10.2.2, 15.3.2 and 15.4',
    says: 'Location is a URI reference; a redirection and a 201 of one resource have it.',
    find: ({ response }) => {
      const locations = valuesOf(response, 'location');
      const isNeeded =
        [301, 302, 303, 307, 308].includes(response.status) ||
        // A list is of several resources, of which none is the primary one.
        (response.status === 201 && !Array.isArray(parseJson(response)));
      if (locations.length === 0) return isNeeded ? ['no Location'] : [];
      return locations.filter((value) => !isUriReference(value));
    },
  },
  'accept patch': {
    source: 'RFC 5789 sections 2.2 and 3.1',
    says: 'Accept-Patch lists media types; OPTIONS where PATCH is allowed and a 415 of PATCH have it.',
    find: ({ request: { method }, response }) => {
      const isOption = method === 'OPTIONS' && listOf(response, 'allow').includes('PATCH');
      const isNeeded = isOption || (method === 'PATCH' && response.status === 415);
      if (fieldOf(response, 'accept-patch') === undefined) return isNeeded ? ['no Accept-Patch'] : [];
      return listOf(response, 'accept-patch').filter((type) => !MEDIA_TYPE.test(type));
    },
  },
  'content type': {
    source: 'RFC 9110 section 8.3',
    says: 'Content has a Content-Type, which is a media type; a 204 has none.',
    find: ({ response }) => {
      const [type, ...more] = valuesOf(response, 'content-type');
      const isNeeded = response.content.length > 0 && !EMPTY_STATUSES.includes(response.status);
      if (type === undefined) return isNeeded ? ['no Content-Type'] : [];
      return more.length > 0 || response.status === 204 || !MEDIA_TYPE.test(type) ? [type] : [];
    },
  },
  json: {
    source: 'RFC 8259 sections 2 and 8.1',
    says: 'Content of a JSON type is JSON in UTF-8.',
    find: ({ response }) =>
      isJson(response) && response.content.length > 0 && parseJson(response) === undefined
        ? ['not JSON in UTF-8']
        : [],
  },
  'content coding': {
    source: 'RFC 9110 sections 8.4 and 12.5.3',
    says: 'Content is encoded only for a request that accepts the coding.',
    find: ({ request, response }) => {
      const accepted = listOf(request, 'accept-encoding').map((one) => one.split(';')[0]?.trim());
      return listOf(response, 'content-encoding').filter((coding) => !accepted.includes(coding));
    },
  },
  ranges: {
    source: 'RFC 9110 sections 14.4 and 15.3.7',
    says: 'Content-Range is in a 206 or a 416, and both answer a request with Range.',
    find: ({ request, response }) => {
      const isPartial = [206, 416].includes(response.status);
      const isRanged = fieldOf(request, 'range') !== undefined;
      const range = valuesOf(response, 'content-range');
      return [...(isPartial && !isRanged ? [`${response.status}`] : []), ...(isPartial ? [] : range)];
    },
  },
  vary: {
    source: 'RFC 9110 section 12.5.5',
    says: 'Vary lists field names, or is *; a response that a cache may reuse has it if Accept chose its type.',
    find: ({ request, response }) => {
      const names = listOf(response, 'vary');
      const wrong = names.filter((name) => !TOKEN.test(name) || (name === '*' && names.length > 1));
      // Without a validator, a cache cannot reuse what it must validate.
      const isReusable =
        fieldOf(response, 'etag') !== undefined ||
        !directivesOf(response).some(([name]) => /^no-/.test(name));
      const [type = ''] = (fieldOf(response, 'content-type') ?? '').split(';');
      const isChosen =
        request.method === 'GET' &&
        response.status === 200 &&
        type !== 'application/json' &&
        listOf(request, 'accept').some((range) => range.split(';')[0] === type);
      return isChosen && isReusable && names.length === 0 ? ['no Vary'] : wrong;
    },
  },
  'cache control': {
    source: 'RFC 9111 section 5.2',
    says: 'Cache-Control has directives of responses, each once, with arguments of their form, that agree.',
    find: ({ response }) => {
      const directives = directivesOf(response);
      const names = directives.map(([name]) => name);
      return [
        ...directives.filter(([name, value]) => !isDirective(name, value)).map(([name]) => name),
        ...names.filter((name, index) => names.indexOf(name) < index),
        ...(names.includes('no-store') && names.length > 1 ? ['no-store beside others'] : []),
        ...(names.includes('public') && names.includes('private') ? ['public and private'] : []),
      ];
    },
  },
  'explicit caching': {
    source: 'RFC 9111 section 4.2.2',
    says: 'A response to GET or HEAD that caches might store by heuristics says whether they may.',
    find: ({ request: { method }, response }) => {
      const isStorable = ['GET', 'HEAD'].includes(method) && [...HEURISTIC, 304].includes(response.status);
      const isExplicit = ['cache-control', 'expires'].some((name) => fieldOf(response, name) !== undefined);
      return isStorable && !isExplicit ? ['neither Cache-Control nor Expires'] : [];
    },
  },
  'shared caches': {
    source: 'RFC 9111 section 3.5',
    says: 'No directive lets a shared cache store a response to a request with Authorization.',
    find: ({ request, response }) =>
      fieldOf(request, 'authorization') === undefined
        ? []
        : directivesOf(response)
            .map(([name]) => name)
            .filter((name) => ['public', 's-maxage', 'must-revalidate'].includes(name)),
  },
  'fields of caches': {
    source: 'RFC 9111 sections 5.1, 5.4 and 5.5',
    says: 'An origin sends neither Age nor the obsolete Pragma and Warning.',
    find: ({ response }) =>
      response.fields.map(([name]) => name).filter((name) => /^(age|pragma|warning)$/i.test(name)),
  },
  links: {
    source: 'RFC 8288 sections 2.1.1, 3.1 and 3.3',
    says: 'A link has a URI reference and one rel, of registered types or URIs.',
    find: ({ response }) => listOf(response, 'link').filter((link) => !isLink(link)),
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
      return findProblemFaults(parseJson(response), response.status, request.target);
    },
  },
} as const satisfies Readonly<Record<string, HttpRule>>;

/** What breaks a rule: the name of the rule, its source, and the fault. */
export function lint(exchange: HttpExchange): readonly string[] {
  return Object.entries<HttpRule>(RULES).flatMap(([name, { source, find }]) =>
    find(exchange).map((fault) => `${name} (${source}): ${fault}`),
  );
}

type WithFields = Pick<HttpResponse, 'fields'>;

function valuesOf({ fields }: WithFields, name: string): readonly string[] {
  return fields.flatMap(fieldNamed(name));
}

const fieldNamed =
  (wanted: string) =>
  ([name, value]: readonly [string, string]): readonly string[] =>
    name.toLowerCase() === wanted ? [value] : [];

function fieldOf(message: WithFields, name: string): string | undefined {
  const values = valuesOf(message, name);
  return values.length === 0 ? undefined : values.join(', ');
}

function listOf(message: WithFields, name: string): readonly string[] {
  return splitList(fieldOf(message, name) ?? '');
}

function hasNoContent(method: string, status: number): boolean {
  return method === 'HEAD' || EMPTY_STATUSES.includes(status);
}

function mediaTypeOf(response: HttpResponse): string {
  return (fieldOf(response, 'content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

function isJson(response: HttpResponse): boolean {
  return /[/+](json|batch\+json)$/.test(mediaTypeOf(response));
}

/** Undefined if the content is not JSON. */
function parseJson({ content }: HttpResponse): unknown {
  try {
    return isUtf8(content) ? JSON.parse(content.toString()) : undefined;
  } catch {
    return undefined;
  }
}

function isImfFixdate(value: string): boolean {
  return IMF_FIXDATE.test(value) && new Date(value).toUTCString() === value;
}

function directivesOf(
  response: HttpResponse,
): readonly (readonly [name: string, value: string | undefined])[] {
  return listOf(response, 'cache-control').map((member) => {
    const [, name = member, value] = DIRECTIVE.exec(member) ?? [];
    return [name.toLowerCase(), value];
  });
}

function isDirective(name: string, value: string | undefined): boolean {
  if (SECONDS_DIRECTIVES.includes(name)) return /^\d+$/.test(value ?? '');
  if (FIELD_DIRECTIVES.includes(name)) return value === undefined || value.startsWith('"');
  return BARE_DIRECTIVES.includes(name) && value === undefined;
}

function isLink(text: string): boolean {
  const [, target, rest = ''] = LINK.exec(text) ?? [];
  const relations = parseParameters(rest).flatMap(([name, value]) => (name === 'rel' ? [value] : []));
  if (target === undefined || !isUriReference(target) || relations.length !== 1) return false;
  const types = relations.join('').replace(/^"|"$/g, '').split(' ');
  return types.every((type) => RELATION_TYPES.test(type) || /^[a-z][a-z\d+.-]*:/.test(type));
}

function isConditional(fields: HttpResponse['fields']): boolean {
  return fields.some(([name]) => /^if-/i.test(name));
}

function findIgnoredConditions(
  request: HttpExchange['request'],
  response: HttpResponse,
  plain: HttpResponse | undefined,
): readonly string[] {
  const { status } = response;
  if (status === 412) return isConditional(request.fields) ? [] : ['412 without a precondition'];
  if (status === 304 && !['GET', 'HEAD'].includes(request.method)) return [`304 to ${request.method}`];
  const tag = fieldOf(response, 'etag') ?? (plain && fieldOf(plain, 'etag'));
  const noneMatch = fieldOf(request, 'if-none-match');
  const isNamed = noneMatch?.trim() === '*' || hasWeakTag(noneMatch, tag);
  if (status === 304) return isNamed || fieldOf(request, 'if-modified-since') ? [] : ['304 without a match'];
  if (status !== 200 || tag === undefined || !['GET', 'HEAD'].includes(request.method)) return [];
  const match = fieldOf(request, 'if-match');
  const isMatched = match === undefined || match.trim() === '*' || splitList(match).includes(tag);
  return [...(isNamed ? ['200 despite If-None-Match'] : []), ...(isMatched ? [] : ['200 despite If-Match'])];
}

/** Whether a list has a tag by weak comparison (RFC 9110 section 8.8.3.2). */
function hasWeakTag(list: string | undefined, tag: string | undefined): boolean {
  const opaque = (text: string) => text.replace(/^W\//, '');
  return tag !== undefined && splitList(list ?? '').some((one) => opaque(one) === opaque(tag));
}

function findProblemFaults(problem: unknown, status: number, target: string): readonly string[] {
  if (typeof problem !== 'object' || problem === null || Array.isArray(problem)) return ['no object'];
  const { type, title, detail, instance, ...rest } = problem as Record<string, unknown>;
  const [path = ''] = target.split('?');
  // A target that is not a URI is returned as it was sent.
  const isInstance = (text: string) => isUriReference(text) || !isUriReference(path);
  const isUri = (value: unknown, accepts = isUriReference) => typeof value === 'string' && accepts(value);
  return [
    ...(isUri(type) ? [] : ['type']),
    ...(typeof title === 'string' ? [] : ['title']),
    ...(typeof detail === 'string' ? [] : ['detail']),
    ...(isUri(instance, isInstance) ? [] : ['instance']),
    ...(rest.status === status ? [] : ['status']),
    ...Object.keys(rest).filter((name) => !/^[A-Za-z]\w{2,}$/.test(name)),
  ];
}
