import { authenticate } from '../auth/authenticate.ts';
import type { ServicePrincipal } from '../auth/principal.ts';
import { requiredRole } from '../auth/role.ts';
import type { GatewayEvent } from '../http/gateway.ts';
import { findPathParameters } from '../http/path.ts';
import { demandIfMatch } from '../http/preconditions.ts';
import type { ProtectedService } from '../service.ts';
import type { Settings } from '../settings/settings.ts';
import { demandJson } from './media-type.ts';
import { receiveBody } from './request-body.ts';
import type { Route } from './route.ts';
import { type RequestValues, validateValues } from './validate.ts';

/** A request that has passed the checks of its route. */
export type CheckedRequest = {
  /** Undefined for a public route. */
  readonly principal: ServicePrincipal | undefined;
  readonly values: RequestValues;
};

/**
 * Runs the checks of a route in the order of the specification. Each refuses by throwing a Problem. Before them, the router
 * or API Gateway has checked path (404) and method (405). After them, the database checks an expired cursor (410),
 * existence (404), preconditions (412) and conflicts (409).
 *
 * There is no promise unless a new token must be verified or a body must be received. The statement of an admitted request
 * is therefore queued before admission decides about the next request.
 */
export function checkRequest(
  route: Route,
  { settings, tokenVerifier }: ProtectedService,
  event: GatewayEvent,
): CheckedRequest | Promise<CheckedRequest> {
  const { path, role } = route;
  findPathParameters(path, event); // 400
  if (role === 'public') return checkContent(route, settings, event, undefined);
  const { deleteRole, rolesClaim } = settings.oauth;
  const caller = authenticate(tokenVerifier, requiredRole(role, deleteRole), rolesClaim, event); // 401, 403
  return caller instanceof Promise
    ? caller.then((principal) => checkContent(route, settings, event, principal))
    : checkContent(route, settings, event, caller);
}

function checkContent(
  route: Route,
  settings: Settings,
  event: GatewayEvent,
  principal: ServicePrincipal | undefined,
): CheckedRequest | Promise<CheckedRequest> {
  if (route.conditional === 'writing' && settings.requireIfMatch) demandIfMatch(event.headers); // 428
  if (!route.body) return { principal, values: validateValues(route, event) }; // 422
  demandJson(route.method, event); // 415
  const received = receiveBody(settings.bodyLimit, event); // 413
  return received.then(() => ({ principal, values: validateValues(route, event) })); // 422
}
