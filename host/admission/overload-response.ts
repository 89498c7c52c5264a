import type { GatewayEvent, GatewayResult } from '../../lib/http/gateway.ts';
import { chooseRequestId } from '../../lib/http/middleware/request-id.ts';
import { problemDocument, problemHeaders, unavailable } from '../../lib/http/problem.ts';
import type { Settings } from '../../lib/settings/settings.ts';

/** Creates the refusal of an overloaded instance: a complete problem document, with very little work. */
export function createOverloadResponse({
  requestIdHeader,
}: Pick<Settings, 'requestIdHeader'>): (event: GatewayEvent) => GatewayResult {
  const problem = unavailable('the instance is overloaded');
  const headers = { ...problemHeaders(problem), 'X-Content-Type-Options': 'nosniff' };
  const idHeader = requestIdHeader.toLowerCase();
  return ({ rawPath, headers: given }) => ({
    statusCode: problem.status,
    headers: { ...headers, [requestIdHeader]: chooseRequestId(given[idHeader]) },
    body: JSON.stringify(problemDocument(problem, rawPath)),
    isBase64Encoded: false,
  });
}
