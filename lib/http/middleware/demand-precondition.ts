import type { GatewayEvent } from '../gateway.ts';
import { preconditionRequired } from '../preconditions.ts';

/** Refuses a write without `If-Match`. An empty `If-Match` is present, and matches nothing. */
export function demandPrecondition({ headers }: GatewayEvent): void {
  if (headers['if-match'] === undefined) throw preconditionRequired();
}
