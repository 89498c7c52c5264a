import { preconditionRequired } from '../preconditions.ts';
import type { RequestInStack } from './middleware.ts';

/** Refuses a write without `If-Match`. An empty `If-Match` is present, and matches nothing. */
export function demandPrecondition({ event }: RequestInStack): void {
  if (event.headers['if-match'] === undefined) throw preconditionRequired();
}
