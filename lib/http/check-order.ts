import { requiredRole } from '../auth/principal.ts';
import type { ProtectedService } from '../service.ts';
import { authenticate } from './middleware/authenticate.ts';
import { demandPrecondition } from './middleware/demand-precondition.ts';
import { demandJson } from './middleware/media-type.ts';
import type { Check } from './middleware/middleware.ts';
import { findPathParameters } from './middleware/path-parameters.ts';
import { receiveBody } from './middleware/receive-body.ts';
import { validateValues } from './middleware/validate.ts';
import type { Route } from './route.ts';

/**
 * The checks in the order of the specification, each with its refusal. Before them, the router or API Gateway has checked
 * path (404) and method (405). After them, the database checks an expired cursor (410), existence (404), preconditions
 * (412) and conflicts (409).
 */
export function listChecks(route: Route, { settings, tokenVerifier }: ProtectedService): Check[] {
  const { role, method, path } = route;
  const { deleteRole, rolesClaim } = settings.oauth;
  const isProtected = role !== 'public';
  const needsIfMatch = route.conditional === 'writing' && settings.requireIfMatch;
  return [
    findPathParameters(path), // 400
    ...(isProtected ? [authenticate(tokenVerifier, requiredRole(role, deleteRole), rolesClaim)] : []), // 401, 403
    ...(needsIfMatch ? [demandPrecondition] : []), // 428
    ...(route.body ? [demandJson(method), receiveBody(settings.bodyLimit)] : []), // 415, 413
    validateValues(route), // 422
  ];
}
