import type { Middleware, RequestInStack } from './middleware.ts';

/** Every response is of the media type it says, and of no other. */
export function noSniffing(): Middleware {
  return { after: forbid, onError: forbid };
}

function forbid({ response }: RequestInStack): void {
  response.headers['X-Content-Type-Options'] = 'nosniff';
}
