import { preconditionRequired } from '../preconditions.ts';
import type { Middleware } from './middleware.ts';

/** Refuses a write that does not say which version it is about; an empty `If-Match` says that it is about none. */
export function demandPrecondition(): Middleware {
  return {
    before({ event }) {
      if (event.headers['if-match'] === undefined) throw preconditionRequired();
    },
  };
}
