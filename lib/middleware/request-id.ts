import { randomUUID } from 'node:crypto';
import { currentRequest } from '../request-scope.ts';
import { REQUEST_ID } from '../text.ts';
import type { Middleware, RequestInStack } from './middleware.ts';

/**
 * The request ID that a header's value stands for: the value itself, or a new UUID version 4. Repeated headers are one
 * value, which the container joins with a comma and a space: that is not acceptable.
 */
export function requestIdOf(given: string | undefined): string {
  return given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
}

/** Names the request being served in the header `header` of its response. */
export function requestId(header: string): Middleware {
  const identify = ({ response }: RequestInStack) => {
    response.headers[header] = currentRequest()?.requestId ?? '';
  };
  return { after: identify, onError: identify };
}
