import type { GatewayEvent, GatewayResult } from '../lib/gateway.ts';
import { requestIdOf } from '../lib/middleware/request-id.ts';
import { problemDocument, problemHeaders, unavailable } from '../lib/problem.ts';
import type { Settings } from '../lib/settings.ts';

/** Makes what an overloaded instance answers: a whole problem, with next to no work. */
export function preparedRefusal({
  requestIdHeader,
}: Pick<Settings, 'requestIdHeader'>): (event: GatewayEvent) => GatewayResult {
  const problem = unavailable('the instance is overloaded');
  const headers = { ...problemHeaders(problem), 'X-Content-Type-Options': 'nosniff' };
  const idHeader = requestIdHeader.toLowerCase();
  return ({ rawPath, headers: given }) => ({
    statusCode: problem.status,
    headers: { ...headers, [requestIdHeader]: requestIdOf(given[idHeader]) },
    body: JSON.stringify(problemDocument(problem, rawPath)),
    isBase64Encoded: false,
  });
}
