import type { GatewayEvent } from '../gateway.ts';
import { parsePathParameters } from '../path.ts';

/** Finds the parameters of the path if no router has done so: in a function. A path that cannot be decoded is 400. */
export function findPathParameters(declared: string, event: GatewayEvent): void {
  if (event.pathParameters) return;
  Object.assign(event, { pathParameters: parsePathParameters(declared, event.rawPath) });
}
