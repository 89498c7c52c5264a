import { logProblem } from '../observability/app-error.ts';
import type { EventLog } from '../observability/event-log.ts';
import { asProblem, problemDocument, problemHeaders } from '../problem.ts';
import type { Middleware } from './middleware.ts';

/** Turns whatever was thrown into a problem, logs it, and hands it to middy's http-error-handler to be written. */
export function problems(log: EventLog): Middleware {
  return {
    onError(request) {
      const { rawPath } = request.event;
      const problem = asProblem(request.error);
      logProblem(log, problem, rawPath);
      request.error = {
        statusCode: problem.status,
        message: JSON.stringify(problemDocument(problem, rawPath)),
        headers: problemHeaders(problem),
        expose: true,
      };
    },
  };
}
