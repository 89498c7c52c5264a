import { type Problem, type ProblemCode, statusOf, typeOf } from '../http/problem.ts';

/** When the service responds with these problems. Their details are less precise, or describe one resource. */
const WHEN: Partial<Record<ProblemCode, string>> = {
  unauthorized_error: 'There is no bearer token, or it is malformed, expired, or not signed by the issuer.',
  forbidden_error: 'The token is valid, but its roles do not include the one that the operation needs.',
  method_not_allowed_error: 'The path does not support this method. `Allow` lists its methods.',
};

/** When the service responds with one of these refusals, without repetitions. */
export function explanationOf(refusals: readonly Problem[]): string {
  return [...new Set(refusals.map(({ code, detail }) => WHEN[code] ?? detail))].join(' ');
}

/** The introduction of the document. `refusals` are all refusals of the service. */
export function introduction(requestIdHeader: string, refusals: readonly Problem[]): string {
  const byCode = Map.groupBy(refusals, ({ code }) => code);
  return `Stores user records for other services.

## Authentication

A caller gets a signed JSON Web Token from the authorization server with the OAuth 2.0 client credentials grant, and
sends it as \`Authorization: Bearer <token>\`. Each operation names the role that it requires. The role
\`api.superuser\` is accepted by all operations. It is for local tests and administrators' scripts. The probes need no token.

## Every response

The header \`${requestIdHeader}\` identifies the request in the response and in the log. \`HEAD\` works wherever \`GET\` does,
\`OPTIONS\` lists the methods of a path. A trailing slash makes no difference.

## Problems

Every refusal is a problem document (RFC 9457).

| status | type | when |
| --- | --- | --- |
${[...byCode].map(problemRow).join('\n')}
`;
}

function problemRow([code, refusals]: readonly [ProblemCode, readonly Problem[]]): string {
  return `| ${statusOf(code)} | \`${typeOf(code)}\` | ${explanationOf(refusals)} |`;
}
