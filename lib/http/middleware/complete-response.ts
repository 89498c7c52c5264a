import { currentRequest } from '../request-scope.ts';
import type { RequestInStack } from './middleware.ts';

/** Completes every response, also that of a problem: its common headers, and the rule for HEAD. */
export function completeResponse(requestIdHeader: string): (request: RequestInStack) => void {
  return ({ event, response }) => {
    const { headers } = response;
    // Clients must not guess another media type than Content-Type.
    headers['X-Content-Type-Options'] = 'nosniff';
    headers[requestIdHeader] = currentRequest()?.requestId ?? '';
    // HEAD is GET without the content, but with its length (RFC 9110 section 9.3.2). A 304 has no content with GET,
    // either.
    if (event.requestContext.http.method !== 'HEAD' || response.statusCode === 304) return;
    headers['Content-Length'] = String(Buffer.byteLength(response.body));
    response.body = '';
  };
}
