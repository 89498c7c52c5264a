import { Problem } from './problem.ts';

// What a request is refused with for its form alone, whatever its path and wherever it is found out.

/** Not what RFC 9112 calls a request. The reason is for the log alone. */
export function notHttp(reason?: string): Problem {
  return new Problem('bad_request_error', { reason, detail: 'The request is not valid HTTP.' });
}

/** RFC 9112 section 3.2: exactly one Host header from HTTP/1.1 on. */
export function needsOneHost(): Problem {
  return new Problem('bad_request_error', { detail: 'The request must have exactly one Host header.' });
}

/** Escapes that are none, or that stand for no UTF-8. */
export function undecodablePath(): Problem {
  return new Problem('bad_request_error', { detail: 'The path is not valid percent-encoded UTF-8.' });
}

/** The connection ended before the body did. */
export function bodyBrokenOff(): Problem {
  return new Problem('bad_request_error', { detail: 'The connection closed before the body was complete.' });
}

/** The limits on a client's time are the server's. */
export function requestTooSlow(): Problem {
  return new Problem('request_timeout_error', { detail: 'The request took too long to arrive.' });
}

/** Of more bytes than Node's parser takes. */
export function headerFieldsTooLarge(): Problem {
  return new Problem('request_header_fields_too_large_error', {
    detail: 'The header fields are too large.',
  });
}

/** No operation has this path. */
export function noSuchPath(): Problem {
  return new Problem('not_found_error', { detail: 'This path does not exist.' });
}
