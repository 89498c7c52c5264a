import { ProblemError, UnexpectedAnswer } from '../problem.ts';

/** The exit codes of the command. */
export const EXIT = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  incomplete: 3,
  cursorExpired: 4,
  unwanted: 5,
} as const;

/** An exit code of the command. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with this exit code, and with this message on standard error. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The reason for an error of the service, of the network or of the file system, for the person at the terminal. */
export function reasonOf(error: unknown): string {
  if (error instanceof ProblemError) return reasonOfProblem(error);
  if (error instanceof UnexpectedAnswer) return `unexpected response ${error.message}`;
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'no response in time';
  // `fetch` has the reason in `cause`. For a name with several addresses there is one error for each of them.
  const [inner] = error instanceof AggregateError ? error.errors : [error.cause];
  return inner instanceof Error ? reasonOf(inner) : error.message;
}

function reasonOfProblem({ problem, requestId }: ProblemError): string {
  const request = requestId === undefined ? '' : ` (request ${requestId})`;
  const text = `${problem.status} ${problem.title}`;
  if (problem.status === 401)
    return `${text}: the service does not accept the token, which may have expired${request}`;
  if (problem.status === 403) return `${text}: the token lacks the role for this command${request}`;
  const faults = 'errors' in problem ? (problem.errors ?? []).map((fault) => JSON.stringify(fault)) : [];
  return [`${text}: ${problem.detail}${request}`, ...faults].join('\n  ');
}
