import { Problem } from '../problem.ts';
import type { Middleware } from './middleware.ts';

/** `application/json` and what has its syntax: the suffix `+json` of RFC 6839 section 3.1. */
const JSON_MEDIA_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json$/i;

/** Refuses a body that is not declared as JSON, or that is encoded in any way. */
export function demandJson(): Middleware {
  return {
    before({ event: { headers } }) {
      const [mediaType = ''] = (headers['content-type'] ?? '').split(';');
      if (!JSON_MEDIA_TYPE.test(mediaType.trim())) throw notDeclaredAsJson();
      if (headers['content-encoding']) throw encodedBody();
    },
  };
}

/** A body of another media type, or of none. */
export function notDeclaredAsJson(): Problem {
  return new Problem('unsupported_media_type_error', {
    detail: 'The body has to be declared as application/json.',
  });
}

/** A body that is compressed, say. */
export function encodedBody(): Problem {
  return new Problem('unsupported_media_type_error', { detail: 'No Content-Encoding is accepted.' });
}
