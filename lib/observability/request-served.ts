import type { GatewayEvent, GatewayResult } from '../http/gateway.ts';
import type { EventLog } from './event-log.ts';
import { redactedText } from './redaction.ts';

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
