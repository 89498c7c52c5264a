import type { Middleware, RequestInStack } from './middleware.ts';

/** HEAD is GET without the content, whose length is told all the same (RFC 9110 section 9.3.2). */
export function head(): Middleware {
  return { after: dropContent, onError: dropContent };
}

function dropContent({ event, response }: RequestInStack): void {
  if (event.requestContext.http.method !== 'HEAD') return;
  response.headers['Content-Length'] = String(Buffer.byteLength(response.body));
  response.body = '';
}
