import type { components } from './schema.ts';

type AnyProblem = components['schemas']['Problem'];
type Faults = Required<Pick<AnyProblem, 'errors'>>;

/** What stands after `urn:svc:error:` in the `type` of a problem. */
export type ProblemCode =
  | 'bad_request_error'
  | 'unauthorized_error'
  | 'forbidden_error'
  | 'not_found_error'
  | 'method_not_allowed_error'
  | 'request_timeout_error'
  | 'conflict_error'
  | 'idempotency_key_in_use_error'
  | 'gone_error'
  | 'cursor_expired_error'
  | 'precondition_failed_error'
  | 'payload_too_large_error'
  | 'unsupported_media_type_error'
  | 'validation_error'
  | 'idempotency_key_reused_error'
  | 'precondition_required_error'
  | 'request_header_fields_too_large_error'
  | 'internal_server_error'
  | 'service_unavailable_error';

type ProblemOf<Code extends ProblemCode> = Omit<AnyProblem, 'type' | 'errors'> & {
  readonly type: `urn:svc:error:${Code}`;
} & (Code extends 'validation_error' ? Faults : Code extends 'conflict_error' ? Partial<Faults> : unknown);

/** A problem document (RFC 9457): a union, told apart by `type`. */
export type Problem = { [Code in ProblemCode]: ProblemOf<Code> }[ProblemCode];

/** The service refused a request, and said why. */
export class ProblemError<P extends Problem = Problem> extends Error {
  override readonly name = 'ProblemError';
  readonly problem: P;
  /** Identifies the request in the log of the service. */
  readonly requestId: string | undefined;

  constructor(problem: P, requestId?: string) {
    super(`${problem.status} ${problem.title}: ${problem.detail}`);
    this.problem = problem;
    this.requestId = requestId;
  }
}

/** Somebody answered, but not the service: a gateway, a balancer, another program. */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer';
  readonly status: number;

  constructor(status: number, what: string) {
    super(`${status}: ${what}`);
    this.status = status;
  }
}

/** Whether the service refused for this reason; then `error.problem` has its members. */
export function isProblem<Code extends ProblemCode>(
  error: unknown,
  code: Code,
): error is ProblemError<Extract<Problem, { type: `urn:svc:error:${Code}` }>> {
  return error instanceof ProblemError && error.problem.type === `urn:svc:error:${code}`;
}

/** The error that an answer other than a success stands for; `body` is what it holds, parsed when it is JSON. */
export function errorOf({ status, headers }: Response, body: unknown): ProblemError | UnexpectedAnswer {
  if (!headers.get('content-type')?.startsWith('application/problem+json'))
    return new UnexpectedAnswer(status, String(body).slice(0, 200));
  // The name of the header is a setting of the service; this is what it usually is.
  return new ProblemError(body as Problem, headers.get('x-request-id') ?? undefined);
}
