import type { EventLog } from '../../observability/event-log.ts';
import { logProblem } from '../../observability/request-log.ts';
import { problemDocument, problemHeaders, toProblem } from '../problem.ts';
import type { RequestInStack } from './middleware.ts';

/** Turns any thrown value into a problem, logs it, and passes it to middy's http-error-handler, which writes it. */
export function writeProblems(log: EventLog): (request: RequestInStack) => void {
  return (request) => {
    const { rawPath } = request.event;
    const problem = toProblem(request.error);
    logProblem(log, problem, rawPath);
    request.error = {
      statusCode: problem.status,
      message: JSON.stringify(problemDocument(problem, rawPath)),
      headers: problemHeaders(problem),
      expose: true,
    };
  };
}
