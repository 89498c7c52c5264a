import { preconditionRequired } from '../preconditions.ts';
import type { Middleware } from './middleware.ts';

/** Refuses a write without `If-Match`. An empty `If-Match` is present, and matches nothing. */
export function demandPrecondition(): Middleware {
  return {
    before({ event }) {
      if (event.headers['if-match'] === undefined) throw preconditionRequired();
    },
  };
}
