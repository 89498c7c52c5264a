import type { GatewayEvent } from '../http/gateway.ts';
import { Problem } from '../http/problem.ts';

/** `application/json` and media types with its syntax: the suffix `+json` (RFC 6839 section 3.1). */
const JSON_MEDIA_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json$/i;

/** The preferred media types of a body. Each is JSON. PATCH takes a merge patch (RFC 7396). */
export function listMediaTypes(method: string): readonly string[] {
  return ['application/json', ...(method === 'PATCH' ? ['application/merge-patch+json'] : [])];
}

/** The header `Accept-Patch` of a resource with these methods, if PATCH is one of them (RFC 5789 section 3.1). */
export function formatAcceptPatch(methods: readonly string[]): Readonly<Record<string, string>> {
  return methods.includes('PATCH') ? { 'Accept-Patch': listMediaTypes('PATCH').join(', ') } : {};
}

/** Refuses a body that is not declared as JSON, or that has a content encoding. */
export function demandJson(method: string, { headers }: GatewayEvent): void {
  const [mediaType = ''] = (headers['content-type'] ?? '').split(';');
  if (!JSON_MEDIA_TYPE.test(mediaType.trim())) throw unsupportedMediaType(method);
  if (headers['content-encoding']) throw encodedBody(method);
}

/** The refusal of a body with another media type, or without one. */
export function unsupportedMediaType(method: string): Problem {
  return unsupported('The Content-Type must be application/json or application/*+json.', method);
}

/** The refusal of a body with a content encoding, for example a compressed one. */
export function encodedBody(method: string): Problem {
  return unsupported('The request must not have a Content-Encoding.', method);
}

function unsupported(detail: string, method: string): Problem {
  return new Problem('unsupported_media_type_error', { detail, headers: formatAcceptPatch([method]) });
}
