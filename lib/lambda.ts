import type { GatewayResult, Handler, Invocation } from './http/gateway.ts';
import { type InvocationEvent, toGatewayEvent } from './http/lambda-event.ts';
import type { EventLog } from './observability/event-log.ts';
import { LineWriter } from './observability/line-writer.ts';
import { redactedCause, redactedMessage } from './observability/redaction.ts';
import { startReporting } from './observability/reporting.ts';
import type { BaseService } from './service.ts';
import { forgetVariables, type Variables } from './settings/environment.ts';
import { readSettings, type Settings } from './settings/settings.ts';

/** An endpoint, or a substitute for one. */
type Bindable<Needs> = {
  readonly route: { readonly operationId: string; readonly method?: string };
  bind(service: Needs): Handler;
};

/** The output of a function. Its body is always a text, because AWS Lambda sends the result as JSON. */
export type FunctionResult = GatewayResult & { readonly body: string };

/** Defaults of settings. A function instance serves one request at a time, often behind RDS Proxy or PgBouncer. */
export const FUNCTION_DEFAULTS = { SVC_POSTGRES_POOL_SIZE: '1', SVC_POSTGRES_POOLER: 'transaction' };

/** Time that AWS Lambda needs to take the result. */
const RETURN_MS = 100;

/** A task is ended when so much of its function's time is left. */
const TASK_MARGIN_MS = 5000;

/**
 * A task as an AWS Lambda function that no request invokes. It fails with a message alone, because AWS Lambda logs every
 * member of an error, and those of PostgreSQL's errors quote rows.
 */
export function lambdaTask(
  run: (settings: Settings, signal?: AbortSignal) => Promise<void>,
  defaults: Variables = {},
) {
  return async (_event?: unknown, context?: Invocation): Promise<void> => {
    const left = readInvocation(context).getRemainingTimeInMillis?.();
    const signal = left === undefined ? undefined : AbortSignal.timeout(Math.max(left - TASK_MARGIN_MS, 0));
    try {
      await run(readSettings(undefined, defaults), signal);
    } catch (fault) {
      const { code, message } = redactedCause(fault) ?? {};
      const reason = signal?.aborted ? "the function's time is up" : message;
      throw new Error(code ? `${reason} (${code})` : reason);
    }
  };
}

/**
 * The endpoint as an AWS Lambda function. `composeNeeds` composes its service from the environment at the first call.
 *
 * @throws {SettingsError} at every call, if settings are missing or not valid
 */
export function lambda<Needs>({ route, bind }: Bindable<Needs>, composeNeeds: (base: BaseService) => Needs) {
  let composing: ReturnType<typeof compose> | undefined;
  return async (event?: InvocationEvent | null, context?: Invocation): Promise<FunctionResult> => {
    composing ??= compose(route.operationId, (base) => bind(composeNeeds(base)));
    const { handler, lines, telemetry } = await composing.catch((fault) => {
      composing = undefined;
      throw fault;
    });
    const invocation = readInvocation(context);
    const result = await handler(toGatewayEvent(event, route.method), invocation);
    const left = invocation.getRemainingTimeInMillis?.() ?? Number.POSITIVE_INFINITY;
    // AWS Lambda freezes the instance as soon as it has the result, and ends it if the result is late.
    await telemetry?.flush(Math.max(left - RETURN_MS, 0));
    lines.flush();
    return { ...result, body: result.body.toString() };
  };
}

/** What a handler reads of the context of AWS Lambda. Emulators may pass any context. */
function readInvocation(context: Invocation | undefined): Invocation {
  if (typeof context?.getRemainingTimeInMillis !== 'function') return {};
  return { getRemainingTimeInMillis: () => context.getRemainingTimeInMillis?.() ?? 0 };
}

async function compose(operationId: string, bound: (base: BaseService) => Handler) {
  const settings = readSettings(undefined, FUNCTION_DEFAULTS);
  const lines = new LineWriter();
  const { log, telemetry } = await startReporting(settings, lines.write);
  const handler = bound({ settings, log, tracing: telemetry?.tracing });
  const isXRay = settings.xray && !settings.otel.enabled;
  return { handler: isXRay ? await withinSubsegment(operationId, handler, log) : handler, lines, telemetry };
}

/** Adds AWS X-Ray, for operators who turn OpenTelemetry off and X-Ray on. */
async function withinSubsegment(name: string, handler: Handler, log: EventLog): Promise<Handler> {
  // The SDK would print lines in a format of its own.
  forgetVariables(['AWS_XRAY_DEBUG_MODE', 'AWS_XRAY_LOG_LEVEL']);
  const { Tracer } = await import('@aws-lambda-powertools/tracer');
  const tracer = new Tracer({ serviceName: 'user-management-service', captureHTTPsRequests: false });
  const warn = (message: unknown) =>
    log.warning('xray_diagnostic', { message: redactedMessage(String(message)) });
  tracer.provider.setLogger({ error: warn, warn, info: () => {}, debug: () => {} });
  // Outside of AWS Lambda there is no segment.
  if (!tracer.isTracingEnabled()) return handler;
  return (event, context) =>
    tracer.provider.captureAsyncFunc(`## ${name}`, async (subsegment) => {
      tracer.annotateColdStart();
      tracer.addServiceNameAnnotation();
      try {
        const result = await handler(event, context);
        if (result.statusCode >= 500) subsegment?.addFaultFlag();
        return result;
      } finally {
        subsegment?.close();
      }
    }) as Promise<GatewayResult>;
}
