import type { RequestInStack } from './middleware.ts';

/** HEAD is GET without the content, but with its length (RFC 9110 section 9.3.2). */
export function respondToHead({ event, response }: RequestInStack): void {
  // A 304 has no content with GET, either.
  if (event.requestContext.http.method !== 'HEAD' || response.statusCode === 304) return;
  response.headers['Content-Length'] = String(Buffer.byteLength(response.body));
  response.body = '';
}
