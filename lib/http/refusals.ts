import { Problem } from './problem.ts';

/** Not a request by RFC 9112. The reason is only for the log. */
export function invalidHttp(reason?: string): Problem {
  return new Problem('bad_request_error', { reason, detail: 'The request is not valid HTTP.' });
}

/** RFC 9112 section 3.2: exactly one Host header from HTTP/1.1 on. */
export function invalidHostHeader(): Problem {
  return new Problem('bad_request_error', { detail: 'The request must have exactly one Host header.' });
}

/** Invalid percent-encoding, or bytes that are not UTF-8. */
export function undecodablePath(): Problem {
  return new Problem('bad_request_error', { detail: 'The path is not valid percent-encoded UTF-8.' });
}

export function incompleteBody(): Problem {
  return new Problem('bad_request_error', { detail: 'The connection closed before the body was complete.' });
}

/** The server's time limits for clients. */
export function slowRequest(): Problem {
  return new Problem('request_timeout_error', { detail: 'The request took too long to arrive.' });
}

/** More bytes than Node's parser accepts. */
export function largeHeaderFields(): Problem {
  return new Problem('request_header_fields_too_large_error', {
    detail: 'The header fields are too large.',
  });
}

/** No operation has this path. */
export function unknownPath(): Problem {
  return new Problem('not_found_error', { detail: 'This path does not exist.' });
}

/** Another method on a known path. `allow` lists the allowed ones (RFC 9110 section 15.5.6). */
export function methodNotAllowed(allow: string): Problem {
  return new Problem('method_not_allowed_error', {
    detail: `This resource supports only these methods: ${allow}.`,
    headers: { Allow: allow },
  });
}

/** The header `Allow` of a resource with these methods (RFC 9110 section 10.2.1). HEAD is allowed wherever GET is. */
export function formatAllow(declared: readonly string[]): string {
  const methods = declared.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}
