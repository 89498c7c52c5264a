import { type ProblemCode, statusOf, typeOf } from '../problem.ts';

/** When the service answers with each problem. */
export const WHEN: Readonly<Record<ProblemCode, string>> = {
  bad_request_error: 'The request is not valid HTTP, or its path cannot be decoded.',
  unauthorized_error: 'There is no bearer token, or it is malformed, expired, or not signed by the issuer.',
  forbidden_error: 'The token is valid, but its roles do not include the one that the operation needs.',
  not_found_error: 'There is no such user or path.',
  method_not_allowed_error: 'The path is known, but not with this method; `Allow` lists those it knows.',
  request_timeout_error: 'The request took too long to arrive.',
  conflict_error: 'The email belongs to another user.',
  precondition_failed_error: '`If-Match` does not hold: the user has changed.',
  payload_too_large_error: 'The body is too large.',
  unsupported_media_type_error: 'The body is not declared as JSON, or has a `Content-Encoding`.',
  validation_error: 'What was sent is not allowed; `errors` lists all that is wrong with it.',
  request_header_fields_too_large_error: 'The header fields are too large.',
  internal_server_error: 'A defect of the service.',
  service_unavailable_error:
    'The service cannot answer at the moment. It may be tried again after `Retry-After`.',
};

/** What a reader has to know before any single operation. */
export function introduction(requestIdHeader: string): string {
  return `Keeps user records for other services.

## Authentication

A caller gets a signed JSON Web Token from the authorization server with the OAuth 2.0 client credentials grant, and
sends it as \`Authorization: Bearer <token>\`. Each operation names the role it needs. A token with the role
\`api.superuser\` may call all of them: it is meant for local tests and master scripts. The probes need no token.

## Every response

The header \`${requestIdHeader}\` names the request in the response and in the log. \`HEAD\` works wherever \`GET\` does,
\`OPTIONS\` lists the methods of a path, and a path with a slash at its end is the same as without it.

## Problems

Every refusal is a problem document (RFC 9457).

| status | type | when |
| --- | --- | --- |
${Object.entries(WHEN).map(problemRow).join('\n')}
`;
}

function problemRow([code, when]: [string, string]): string {
  return `| ${statusOf(code as ProblemCode)} | \`${typeOf(code as ProblemCode)}\` | ${when} |`;
}
