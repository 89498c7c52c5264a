import { refuseMissingRole } from '../auth/principal.ts';
import { refuseMethod } from '../http/allow.ts';
import { refuseEncodedBody, refuseMediaType } from '../http/middleware/media-type.ts';
import { refuseLargeBody } from '../http/middleware/receive-body.ts';
import type { RequestSchemas } from '../http/middleware/validate.ts';
import { preconditionRequired } from '../http/preconditions.ts';
import { type Problem, toProblem, unauthorized, unavailable } from '../http/problem.ts';
import {
  refuseHostHeader,
  refuseIncompleteBody,
  refuseInvalidHttp,
  refuseLargeHeaderFields,
  refuseSlowRequest,
  refuseUndecodablePath,
  refuseUnknownPath,
} from '../http/refusals.ts';
import type { Route } from '../http/route.ts';
import { valuesNotAllowed } from '../http/value-faults.ts';
import { faultsOf } from './value-faults.ts';

/**
 * Every problem that the route can return, lowest status first. Each is made by the function that the rule itself uses.
 */
export function refusalsOf(route: Route, bodyLimit: number): readonly Problem[] {
  return byStatus([
    ...[
      refuseUndecodablePath(),
      refuseInvalidHttp(),
      refuseHostHeader(),
      refuseSlowRequest(),
      refuseLargeHeaderFields(),
    ],
    ...(route.role === 'public' ? [] : [unauthorized(''), refuseMissingRole(route.role)]),
    ...(route.conditional === 'writing' ? [preconditionRequired()] : []),
    ...(route.body ? refusalsOfBody(route.method, bodyLimit) : []),
    ...(hasValues(route) ? [valuesNotAllowed(faultsOf(route))] : []),
    ...route.problems.map((refusal) => refusal()),
    // PostgreSQL, or the identity provider's keys, can be unavailable.
    ...(route.needs === 'nothing' ? [] : [unavailable('')]),
    toProblem(undefined),
  ]);
}

function refusalsOfBody(method: string, limit: number): readonly Problem[] {
  return [refuseIncompleteBody(), refuseMediaType(method), refuseEncodedBody(method), refuseLargeBody(limit)];
}

/** Every problem of these routes and of unknown paths, lowest status first. */
export function allRefusals(routes: readonly Route[], bodyLimit: number): readonly Problem[] {
  const ofNoRoute = [refuseUnknownPath(), refuseMethod('')];
  return byStatus([...routes.flatMap((route) => refusalsOf(route, bodyLimit)), ...ofNoRoute]);
}

function byStatus(refusals: readonly Problem[]): readonly Problem[] {
  return refusals.toSorted((one, other) => one.status - other.status);
}

function hasValues({ params, query, body }: RequestSchemas): boolean {
  return Boolean(params ?? query ?? body);
}
