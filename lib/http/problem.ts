const PROBLEMS = {
  bad_request_error: [400, 'Bad Request'],
  unauthorized_error: [401, 'Unauthorized'],
  forbidden_error: [403, 'Forbidden'],
  not_found_error: [404, 'Not Found'],
  method_not_allowed_error: [405, 'Method Not Allowed'],
  request_timeout_error: [408, 'Request Timeout'],
  conflict_error: [409, 'Conflict'],
  idempotency_key_in_use_error: [409, 'Conflict'],
  gone_error: [410, 'Gone'],
  cursor_expired_error: [410, 'Gone'],
  precondition_failed_error: [412, 'Precondition Failed'],
  payload_too_large_error: [413, 'Payload Too Large'],
  unsupported_media_type_error: [415, 'Unsupported Media Type'],
  validation_error: [422, 'Unprocessable Entity'],
  idempotency_key_reused_error: [422, 'Unprocessable Entity'],
  precondition_required_error: [428, 'Precondition Required'],
  request_header_fields_too_large_error: [431, 'Request Header Fields Too Large'],
  internal_server_error: [500, 'Internal Server Error'],
  service_unavailable_error: [503, 'Service Unavailable'],
} as const;

/** A problem code: the last part of the URN in `type`. */
export type ProblemCode = keyof typeof PROBLEMS;

/** A body member (`pointer`, RFC 6901 in a URI fragment), a path or query parameter, or a header field. */
export type ValuePlace =
  | { readonly pointer: string }
  | { readonly parameter: string }
  | { readonly header: string };

export type ValueFault = { readonly detail: string } & ValuePlace;

/** RFC 9457 problem document. `errors` names the invalid values, if there are any. */
export type ProblemDocument = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly errors?: readonly ValueFault[];
};

type ProblemOptions = {
  readonly reason?: string | undefined;
  readonly detail?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly errors?: readonly ValueFault[];
  readonly cause?: unknown;
};

/** A refusal. Handlers and rules throw it, and `middleware-stack.ts` turns it into the response. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly errors: readonly ValueFault[] | undefined;

  constructor(code: ProblemCode, { reason, detail, headers, errors, cause }: ProblemOptions = {}) {
    super(reason ?? detail ?? titleOf(code), cause === undefined ? undefined : { cause });
    this.name = 'Problem';
    this.code = code;
    this.detail = detail ?? titleOf(code);
    this.headers = headers ?? {};
    this.errors = errors;
  }

  get status(): number {
    return statusOf(this.code);
  }
}

/**
 * The refusal of a caller without a token, or with one that is not accepted (RFC 6750 section 3). The reason is only
 * for the log.
 */
export function unauthorized(reason: string): Problem {
  return new Problem('unauthorized_error', { reason, headers: { 'WWW-Authenticate': 'Bearer' } });
}

/** The headers of every refusal of a request that may succeed in a second (RFC 9110 section 10.2.3). */
export const RETRY_SOON = { 'Retry-After': '1' } as const;

/** The refusal of a request that may succeed in a second. */
export function unavailable(reason: string, cause?: unknown): Problem {
  return new Problem('service_unavailable_error', {
    reason,
    detail: 'The service is temporarily unavailable. Try again later.',
    headers: RETRY_SOON,
    cause,
  });
}

/**
 * A thrown value as a problem. Any other value than a Problem is a defect of the service, and the caller gets nothing
 * of it.
 */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return new Problem('internal_server_error', {
    reason,
    cause: thrown,
    detail: 'An internal error occurred.',
  });
}

/** The document for the caller. `instance` is the request's path without the query. */
export function problemDocument(problem: Problem, instance: string): ProblemDocument {
  return {
    type: typeOf(problem.code),
    title: titleOf(problem.code),
    status: problem.status,
    detail: problem.detail,
    instance,
    ...(problem.errors && { errors: problem.errors }),
  };
}

export function problemHeaders(problem: Problem): Record<string, string> {
  return { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store', ...problem.headers };
}

export const typeOf = (code: ProblemCode): string => `urn:svc:error:${code}`;
export const statusOf = (code: ProblemCode): number => PROBLEMS[code][0];
const titleOf = (code: ProblemCode): string => PROBLEMS[code][1];
