import { demandRole } from '../auth/principal.ts';
import type { Route } from '../endpoint.ts';
import { demandJson } from '../middleware/media-type.ts';
import type { Middleware, RequestInStack } from '../middleware/middleware.ts';
import { largeBody } from '../middleware/receive-body.ts';
import { validate } from '../middleware/validate.ts';
import { asProblem, Problem, type ProblemCode, unauthorized, unavailable } from '../problem.ts';
import { WHEN } from './explanations.ts';

/** What HTTP itself can be refused with, whatever the path. */
const OF_HTTP: readonly ProblemCode[] = [
  'bad_request_error',
  'request_timeout_error',
  'request_header_fields_too_large_error',
];

/** What callers read where it says more than the meaning of the code. */
const DETAILS: Partial<Record<ProblemCode, string>> = {
  bad_request_error: 'The path cannot be decoded.',
  not_found_error: 'There is no user with this id.',
  conflict_error: 'A user with this email exists already.',
  precondition_failed_error: 'The user has changed: If-Match does not hold.',
};

/** Every problem that the route can answer, lowest status first: wherever possible thrown by the check itself. */
export function refusalsOf(route: Route, bodyLimit: number): readonly Problem[] {
  const refusals = [
    ...OF_HTTP.map(refusalOf),
    ...refusalsOfCaller(route),
    // PostgreSQL, or the identity provider's keys.
    ...(route.needs === 'nothing' ? [] : [unavailable('')]),
    ...(route.body ? [refusalBy(demandJson()), largeBody(bodyLimit)] : []),
    ...(route.params || route.query || route.body ? [refusalBy(validate(route), wrongValues(route))] : []),
    ...route.problems.map(refusalOf),
    asProblem(undefined),
  ];
  const byCode = new Map(refusals.map((refusal) => [refusal.code, refusal]));
  return [...byCode.values()].sort((one, other) => one.status - other.status);
}

function refusalOf(code: ProblemCode): Problem {
  return new Problem(code, { detail: DETAILS[code] ?? WHEN[code] });
}

/** A token may be absent, or lack the role. */
function refusalsOfCaller({ role }: Route): readonly Problem[] {
  if (role === 'public') return [];
  const stranger = { subject: '', roles: [], claims: {} };
  return [unauthorized(''), thrownBy(() => demandRole(stranger, role))];
}

type Values = Pick<RequestInStack['event'], 'pathParameters' | 'rawQueryString' | 'body'>;

/** No parameter is a hyphen, and no member an empty object. */
function wrongValues({ params, query, body }: Route): Values {
  const namesOf = (schema: Route['body']) => Object.keys(schema?.shape ?? {});
  return {
    pathParameters: Object.fromEntries(namesOf(params).map((name) => [name, '-'])),
    rawQueryString: namesOf(query)
      .map((name) => `${name}=-`)
      .join('&'),
    body: JSON.stringify(Object.fromEntries(namesOf(body).map((name) => [name, {}]))),
  };
}

function refusalBy(check: Middleware, values?: Values): Problem {
  const event = { headers: {}, ...values };
  return thrownBy(() => check.before?.({ event, context: {} } as unknown as RequestInStack));
}

function thrownBy(check: () => unknown): Problem {
  try {
    check();
  } catch (refusal) {
    return asProblem(refusal);
  }
  throw new Error('The check has refused nothing, so that its problem cannot be shown.');
}
