import type { RequestInStack } from './middleware.ts';

/** Adds the header that forbids clients to guess another media type than Content-Type. */
export function forbidSniffing({ response }: RequestInStack): void {
  response.headers['X-Content-Type-Options'] = 'nosniff';
}
