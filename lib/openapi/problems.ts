import * as z from 'zod';
import { missingRole } from '../auth/role.ts';
import { encodedBody, unsupportedMediaType } from '../endpoint/media-type.ts';
import { largeBody } from '../endpoint/request-body.ts';
import type { Route } from '../endpoint/route.ts';
import type { RequestSchemas } from '../endpoint/validate.ts';
import { preconditionRequired } from '../http/preconditions.ts';
import { type Problem, toProblem, unauthorized, unavailable, type ValueFault } from '../http/problem.ts';
import * as http from '../http/refusals.ts';
import { detailOf, valuesNotAllowed } from '../http/value-faults.ts';
import { MAX_HEAD_LENGTH } from '../text.ts';

/**
 * Every problem that the route can return, lowest status first. Each is made by the function that the rule itself uses.
 */
export function problemsOf(route: Route, bodyLimit: number): readonly Problem[] {
  const { method } = route;
  const faults = faultsOf(route);
  return byStatus([
    http.undecodablePath(),
    http.invalidHttp(),
    http.invalidHostHeader(),
    http.slowRequest(),
    http.largeHeaderFields(),
    ...(route.role === 'public' ? [] : [unauthorized(''), missingRole(route.role)]),
    ...(route.conditional === 'writing' ? [preconditionRequired()] : []),
    ...(route.body
      ? [http.incompleteBody(), unsupportedMediaType(method), encodedBody(method), largeBody(bodyLimit)]
      : []),
    ...(faults.length > 0 ? [valuesNotAllowed(faults)] : []),
    ...(route.problems ?? []).map((create) => create()),
    // PostgreSQL, or the identity provider's keys, can be unavailable.
    ...(route.needs === 'nothing' ? [] : [unavailable('')]),
    toProblem(undefined),
  ]);
}

/** Every problem of these routes and of unknown paths, lowest status first. */
export function allProblems(routes: readonly Route[], bodyLimit: number): readonly Problem[] {
  const ofNoRoute = [http.unknownPath(), http.methodNotAllowed('')];
  return byStatus([...routes.flatMap((route) => problemsOf(route, bodyLimit)), ...ofNoRoute]);
}

function byStatus(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted((one, other) => one.status - other.status);
}

function faultsOf({ headers, params, query, body }: RequestSchemas): readonly ValueFault[] {
  return [
    ...rulesOf(headers).map(([header, detail]) => ({ header, detail })),
    ...[...rulesOf(params), ...rulesOf(query)].map(([parameter, detail]) => ({ parameter, detail })),
    ...rulesOf(body).map(([member, detail]) => ({ pointer: `#/${member}`, detail })),
  ];
}

/** Values of which every member accepts none: a text that is too long and cannot be stored, and an empty list. */
const REFUSED = ['\0'.repeat(MAX_HEAD_LENGTH), []];

/** The first rule of each member that is not only about its type. */
function rulesOf(schema: z.ZodObject | undefined): readonly (readonly [name: string, rule: string])[] {
  return Object.entries(schema?.shape ?? {}).map(([name, member]) => {
    const results = REFUSED.map((value) => z.safeParse(member, value, { error: detailOf }));
    const issues = results.flatMap(({ error }) => error?.issues ?? []);
    const rule = issues.find(({ code }) => code !== 'invalid_type') ?? issues[0];
    return [name, rule?.message ?? ''];
  });
}

/** When the service responds with these problems. Their details are less precise, or describe one resource. */
const WHEN: Partial<Record<Problem['code'], string>> = {
  unauthorized_error: 'There is no bearer token, or it is malformed, expired, or not signed by the issuer.',
  forbidden_error: 'The token is valid, but its roles do not include the one that the operation needs.',
  method_not_allowed_error: 'The path does not support this method. `Allow` lists its methods.',
};

/** When the service responds with one of these problems, without repetitions. */
export function explanationOf(problems: readonly Problem[]): string {
  return [...new Set(problems.map(({ code, detail }) => WHEN[code] ?? detail))].join(' ');
}
