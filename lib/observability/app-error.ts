import type { Problem } from '../problem.ts';
import type { EventLog } from './event-log.ts';
import { maskedPath } from './personal-data.ts';

type Cause = { name: string; code?: string; message: string; stack?: string; cause?: Cause };

/**
 * The event of every refusal: a warning below 500; an error from 500 on, with the cause and its stack. A refusal below
 * 500 that something else failed for is a gap in our own checks, and told as one.
 */
export function logProblem(log: EventLog, problem: Problem, path: string): void {
  const fields = { message: problem.message, status_code: problem.status, path: maskedPath(path) };
  const cause = describe(problem.cause);
  if (problem.status >= 500) {
    log.error('app_error', { ...fields, cause });
    return;
  }
  log.warning('app_error', fields);
  if (cause) log.error('validation_gap', { cause });
}

/** What may be known of an error: the other members of PostgreSQL's errors hold values of rows. */
export function describe(error: unknown, depth = 0): Cause | undefined {
  if (!(error instanceof Error)) return undefined;
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  // Data exceptions (class 22) quote the value they are about.
  const isQuoting = typeof code === 'string' && /^2[23]...$/.test(code);
  const inner = depth < 3 ? describe(cause, depth + 1) : undefined;
  return {
    name,
    ...(typeof code === 'string' && { code }),
    message: isQuoting ? 'a value was refused' : message,
    ...(stack && { stack: isQuoting ? stack.replace(message, 'a value was refused') : stack }),
    ...(inner && { cause: inner }),
  };
}
