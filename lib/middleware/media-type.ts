import { Problem } from '../problem.ts';
import type { Middleware } from './middleware.ts';

/** `application/json` and what has its syntax: the suffix `+json` of RFC 6839 section 3.1. */
const JSON_MEDIA_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json$/i;

/** The media types that a body is best sent as; each is JSON. A merge patch (RFC 7396) is what PATCH takes. */
export function mediaTypesOf(method: string): readonly string[] {
  return ['application/json', ...(method === 'PATCH' ? ['application/merge-patch+json'] : [])];
}

/** The header `Accept-Patch` of a resource with these methods, if PATCH is one of them (RFC 5789 section 3.1). */
export function acceptPatch(methods: readonly string[]): Readonly<Record<string, string>> {
  return methods.includes('PATCH') ? { 'Accept-Patch': mediaTypesOf('PATCH').join(', ') } : {};
}

/** Refuses a body that is not declared as JSON, or that is encoded in any way. */
export function demandJson(method: string): Middleware {
  return {
    before({ event: { headers } }) {
      const [mediaType = ''] = (headers['content-type'] ?? '').split(';');
      if (!JSON_MEDIA_TYPE.test(mediaType.trim())) throw notDeclaredAsJson(method);
      if (headers['content-encoding']) throw encodedBody(method);
    },
  };
}

/** A body of another media type, or of none. */
export function notDeclaredAsJson(method: string): Problem {
  return unsupported('The Content-Type must be application/json or application/*+json.', method);
}

/** A body that is compressed, say. */
export function encodedBody(method: string): Problem {
  return unsupported('The request must not have a Content-Encoding.', method);
}

function unsupported(detail: string, method: string): Problem {
  return new Problem('unsupported_media_type_error', { detail, headers: acceptPatch([method]) });
}
