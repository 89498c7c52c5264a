import { methodNotAllowed } from '../allow.ts';
import { missingRole } from '../auth/principal.ts';
import type { Route } from '../endpoint.ts';
import {
  bodyBrokenOff,
  headerFieldsTooLarge,
  needsOneHost,
  noSuchPath,
  notHttp,
  requestTooSlow,
  undecodablePath,
} from '../http-refusals.ts';
import { encodedBody, notDeclaredAsJson } from '../middleware/media-type.ts';
import { bodyTooLarge } from '../middleware/receive-body.ts';
import type { RequestSchemas } from '../middleware/validate.ts';
import { preconditionRequired } from '../preconditions.ts';
import { asProblem, type Problem, unauthorized, unavailable } from '../problem.ts';
import { valuesNotAllowed } from '../value-faults.ts';
import { faultsOf } from './value-faults.ts';

/**
 * Every problem that the route can return, lowest status first. Each is made by the function that the rule itself uses.
 */
export function refusalsOf(route: Route, bodyLimit: number): readonly Problem[] {
  return byStatus([
    ...[undecodablePath(), notHttp(), needsOneHost(), requestTooSlow(), headerFieldsTooLarge()],
    ...(route.role === 'public' ? [] : [unauthorized(''), missingRole(route.role)]),
    ...(route.conditional === 'writing' ? [preconditionRequired()] : []),
    ...(route.body ? refusalsOfBody(route.method, bodyLimit) : []),
    ...(hasValues(route) ? [valuesNotAllowed(faultsOf(route))] : []),
    ...route.problems.map((refusal) => refusal()),
    // PostgreSQL, or the identity provider's keys, can be unavailable.
    ...(route.needs === 'nothing' ? [] : [unavailable('')]),
    asProblem(undefined),
  ]);
}

function refusalsOfBody(method: string, limit: number): readonly Problem[] {
  return [bodyBrokenOff(), notDeclaredAsJson(method), encodedBody(method), bodyTooLarge(limit)];
}

/** Every problem of these routes and of unknown paths, lowest status first. */
export function allRefusals(routes: readonly Route[], bodyLimit: number): readonly Problem[] {
  const ofNoRoute = [noSuchPath(), methodNotAllowed('')];
  return byStatus([...routes.flatMap((route) => refusalsOf(route, bodyLimit)), ...ofNoRoute]);
}

function byStatus(refusals: readonly Problem[]): readonly Problem[] {
  return refusals.toSorted((one, other) => one.status - other.status);
}

function hasValues({ params, query, body }: RequestSchemas): boolean {
  return Boolean(params ?? query ?? body);
}
