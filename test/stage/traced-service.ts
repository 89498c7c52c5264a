import { randomBytes } from 'node:crypto';
import type { Variables } from '../../lib/settings/environment.ts';
import type { HostOptions } from './built-host.ts';
import { startBuiltService } from './built-service.ts';
import { type ReceivedSpan, startOtlpReceiver } from './otlp-receiver.ts';

/** A running built host that sends its telemetry to a receiver. */
export type TracedService = Awaited<ReturnType<typeof startTracedService>>;

/** Starts the built host and a receiver of its spans, which it sends with little delay. */
export async function startTracedService(variables: Variables = {}, options: HostOptions = {}) {
  const receiver = await startOtlpReceiver();
  const telemetry = {
    SVC_OTEL_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  const service = await startBuiltService({ ...telemetry, ...variables }, options);
  return {
    ...service,
    receiver,
    /** Waits until the spans of all earlier requests have been exported, as those of one more request have. */
    async untilExported() {
      const { traceId, headers } = traceOfCaller();
      await service.call('GET', '/api/v1/users/?limit=1', undefined, { headers });
      await receiver.untilTrace(traceId, 2);
    },
    async remove() {
      await service.remove();
      await receiver.stop();
    },
  };
}

/** A trace of a caller, by which a test finds the spans of its request. */
export function traceOfCaller({ sampled = true } = {}) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const traceparent = `00-${traceId}-${spanId}-0${sampled ? 1 : 0}`;
  return { traceId, spanId, headers: { traceparent } };
}

/** The span of an incoming request. */
export const isServer = ({ kind }: ReceivedSpan): boolean => kind === 'SERVER';

/** The span of a statement or of an outgoing request. */
export const isClient = ({ kind }: ReceivedSpan): boolean => kind === 'CLIENT';
