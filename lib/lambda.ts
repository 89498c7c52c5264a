import type { GatewayEvent, GatewayResult, Handler, Invocation } from './gateway.ts';
import { createEventLog, type EventLog } from './observability/event-log.ts';
import { createLineWriter, type LineWriter } from './observability/line-writer.ts';
import { loadTelemetry } from './observability/load-telemetry.ts';
import type { Telemetry } from './observability/telemetry.ts';
import { readSettings, type Settings } from './settings.ts';

/** What a function answers with, once it has been composed. */
type Composed = {
  readonly handler: Handler;
  readonly lines: LineWriter;
  readonly telemetry?: Telemetry | undefined;
};

/** An endpoint, or what answers in place of one. */
type Answering<Needs> = {
  readonly route: { readonly operationId: string };
  bind(service: Needs): Handler;
};

/** Composes what an endpoint needs. */
type Compose<Needs> = (settings: Settings, log: EventLog) => Needs;

/** A function instance serves one request at a time, behind RDS Proxy or PgBouncer as often as not. */
const DEFAULTS = { SVC_POSTGRES_POOL_SIZE: '1', SVC_POSTGRES_POOLER: 'transaction' };

/** In milliseconds: what AWS Lambda needs to take the result. */
const RETURN = 100;

/**
 * The endpoint as an AWS Lambda function, which `composeNeeds` composes from the environment at its first call.
 *
 * @throws {SettingsError} at every call, when settings are missing or wrong
 */
export function lambda<Needs>({ route, bind }: Answering<Needs>, composeNeeds: Compose<Needs>) {
  let composing: Promise<Composed> | undefined;
  return async (event: GatewayEvent, context?: Invocation): Promise<GatewayResult> => {
    composing ??= compose(route.operationId, (settings, log) => bind(composeNeeds(settings, log)));
    const { handler, lines, telemetry } = await composing.catch((fault) => {
      composing = undefined;
      throw fault;
    });
    const result = await handler({ ...event, rawPath: encoded(event.rawPath) }, context);
    // The instance is frozen as soon as the result is out, and killed when that is late.
    await telemetry?.flush(timeLeft(context));
    lines.flush();
    return result;
  };
}

/** Milliseconds that are left before the result has to be out. */
function timeLeft(context: Invocation | undefined): number {
  const remaining = context?.getRemainingTimeInMillis?.() ?? Number.POSITIVE_INFINITY;
  return Math.max(remaining - RETURN, 0);
}

/** As the caller sent it: API Gateway decodes `rawPath`, and with it what a path cannot hold. */
function encoded(path: string): string {
  return path.replace(/[^\w\-.~!$&'()*+,;=:@/%]|%(?![\da-f]{2})/giu, encodeURIComponent);
}

async function compose(operationId: string, bound: Compose<Handler>): Promise<Composed> {
  const settings = readSettings(undefined, DEFAULTS);
  const lines = createLineWriter();
  const telemetry = await loadTelemetry(settings, lines.write);
  const log = createEventLog(settings, lines.write);
  for (const name of settings.unknown) log.warning('unknown_setting', { name });
  const handler = bound(settings, log);
  const isXRay = settings.xray && !settings.otel.enabled;
  return { handler: isXRay ? await withinSubsegment(operationId, handler) : handler, lines, telemetry };
}

/** AWS X-Ray, for those who switch OpenTelemetry off and it on. */
async function withinSubsegment(name: string, handler: Handler): Promise<Handler> {
  const { Tracer } = await import('@aws-lambda-powertools/tracer');
  const tracer = new Tracer({ serviceName: 'user-management-service', captureHTTPsRequests: false });
  return async (event, context) => {
    const segment = tracer.getSegment();
    const subsegment = segment?.addNewSubsegment(`## ${name}`);
    if (!segment || !subsegment) return handler(event, context);
    tracer.setSegment(subsegment);
    tracer.annotateColdStart();
    tracer.addServiceNameAnnotation();
    try {
      const result = await handler(event, context);
      if (result.statusCode >= 500) subsegment.addFaultFlag();
      return result;
    } finally {
      subsegment.close();
      tracer.setSegment(segment);
    }
  };
}
