import type { GatewayEvent, GatewayResult } from '../http/gateway.ts';
import type { Problem } from '../http/problem.ts';
import type { EventLog } from './event-log.ts';
import {
  type Cause,
  readMessage,
  redactedCause,
  redactedMessage,
  redactedPath,
  redactedText,
} from './redaction.ts';

/**
 * Serves a request and logs its result. `route` is the path as declared, undefined if no operation serves the request.
 */
export async function logServed(
  log: EventLog,
  { requestContext }: GatewayEvent,
  route: string | undefined,
  serve: () => Promise<GatewayResult>,
): Promise<GatewayResult> {
  const begun = performance.now();
  const result = await serve();
  log.debug('request_served', {
    method: redactedText(requestContext.http.method),
    route,
    status_code: result.statusCode,
    duration_ms: Math.round((performance.now() - begun) * 1000) / 1000,
  });
  return result;
}

/**
 * Logs the event of every refusal: a warning below 500, and from 500 on an error with the cause. A 503 has no stack. A
 * refusal below 500 with a cause is a gap in the service's own checks, and is also logged as such.
 */
export function logProblem(log: EventLog, problem: Problem, path: string): void {
  const cause = redactedCause(problem.cause, { hasStack: problem.status !== 503 });
  const message = messageOf(problem, cause);
  const fields = { message, status_code: problem.status, path: redactedPath(path) };
  if (problem.status >= 500) {
    log.error('app_error', { ...fields, cause });
    return;
  }
  log.warning('app_error', fields);
  if (cause) log.error('database_refused_value', { cause });
}

/** The message may quote that of its cause. A caller without the role is logged under its own name. */
function messageOf({ code, message, cause: error }: Problem, cause: Cause | undefined): string {
  if (code === 'forbidden_error') return message;
  const quoted = error instanceof Error ? readMessage(error) : '';
  return redactedMessage(cause && quoted ? message.replaceAll(quoted, () => cause.message) : message);
}
