import type { components, ProblemCode } from './schema.ts';

export type { ProblemCode };

type AnyProblem = components['schemas']['Problem'];
type Faults = Required<Pick<AnyProblem, 'errors'>>;

type ProblemOf<Code extends ProblemCode> = Omit<AnyProblem, 'type' | 'errors'> & {
  readonly type: `urn:svc:error:${Code}`;
} & (Code extends 'validation_error' ? Faults : Code extends 'conflict_error' ? Partial<Faults> : unknown);

/** A problem document (RFC 9457): a union, distinguished by `type`. */
export type Problem = { [Code in ProblemCode]: ProblemOf<Code> }[ProblemCode];

/** The service refused a request with a problem document. */
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

/** In characters: how much of a foreign response an error shows, and how long a part of a secret must be to be hidden. */
const EXCERPT_LENGTH = 200;
const PART_LENGTH = 8;

type Foreign = {
  readonly contentType: string;
  readonly content: string;
  readonly secrets: readonly string[];
};

/** The response is not from the service, but from a gateway, a balancer or another program. */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer';
  readonly status: number;
  readonly contentType: string | undefined;

  constructor(status: number, reason: string, foreign?: Foreign) {
    const [type, text] = [foreign?.contentType, foreign?.content].map((part) =>
      excerpt(part ?? '', foreign?.secrets),
    );
    super(`${status}: ${reason}${foreign ? ` (${type || 'no content type'}): ${text || 'no content'}` : ''}`);
    this.status = status;
    this.contentType = type || undefined;
  }
}

/** A value that cannot be sent. It is refused before anything is sent. */
export class WrongValue extends TypeError {}

/** Whether a value has members: a list, a Map or a Date has none. */
export function isObject(value: unknown): value is object {
  return Object.prototype.toString.call(value) === '[object Object]';
}

/** Whether a text is an http(s) URL without credentials. In a browser it may be relative. */
export function isAddress(text: unknown): text is string {
  try {
    return typeof text === 'string' && /^https?:/.test(new Request(text).url);
  } catch {
    return false;
  }
}

/** The beginning of a text without control characters, and without the secrets, their parts and their usual encodings. */
export function excerpt(whole: string, secrets: readonly string[] = []): string {
  const ascii = secrets.filter((secret) => /^[ -~]+$/.test(secret));
  const encoded = ascii.flatMap((secret) => ['', ' ', '  '].map((before) => btoa(before + secret)));
  const hidden = [...secrets, ...ascii.map(encodeURIComponent), ...encoded].filter(Boolean);
  const text = hidden.reduce((left, secret) => left.replaceAll(secret, '…'), whole);
  const isHidden = (index: number) =>
    index + PART_LENGTH <= text.length &&
    hidden.some((one) => one.includes(text.slice(index, index + PART_LENGTH)));
  let shown = '';
  for (let index = 0; index < text.length && shown.length < EXCERPT_LENGTH; index += 1) {
    const begin = index;
    while (isHidden(index)) index += 1;
    if (index > begin) index += PART_LENGTH - 2;
    shown += index > begin ? '…' : text[index];
  }
  return shown.replace(/[\p{Cc}\p{Surrogate}]+/gu, ' ').trim();
}

/** Whether the service refused for this reason. If so, `error.problem` has the members of this problem. */
export function isProblem<Code extends ProblemCode>(
  error: unknown,
  code: Code,
): error is ProblemError<Extract<Problem, { type: `urn:svc:error:${Code}` }>> {
  return error instanceof ProblemError && error.problem.type === `urn:svc:error:${code}`;
}
