import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Attributes,
  type DiagLogger,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  metrics,
  type ProxyTracerProvider,
  trace,
} from '@opentelemetry/api';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { defaultResource, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { SimpleSpanProcessor } from '@opentelemetry/sdk-trace';
import { withoutVariables } from '../settings/environment.ts';
import type { PostgresServer, Settings } from '../settings/settings.ts';
import { BUILD_VERSION } from '../version.ts';
import { DatabaseSpans } from './database-span.ts';
import { type ActiveSpan, createEventLog, type EventLog, type Level } from './event-log.ts';
import type { WriteLine } from './line-writer.ts';
import { listenForPrometheus } from './metrics-port.ts';
import { redactedMessage, redactedPath } from './redaction.ts';
import { ServerSpans } from './server-span.ts';
import { spanLines } from './span-lines.ts';
import { SCOPE } from './tracer.ts';

export type Telemetry = ReturnType<typeof startTelemetry>;

/** The parts of tracing in requests and statements. If tracing is off, there are none, and nothing is loaded. */
export type Tracing = Telemetry['tracing'];

/** In milliseconds. An unavailable collector must not delay the exit. */
const LAST_EXPORT_MS = 1000;

export function startTelemetry(settings: Settings, write: WriteLine) {
  const { otel } = settings;
  // Each part of the URL of a password may be a secret.
  const { origin, pathname, search } = URL.parse(settings.postgres.passwordFrom ?? '') ?? {};
  const isPasswordSource = (asked: { readonly origin: string; readonly path: string }) =>
    asked.origin === origin && asked.path === `${pathname}${search}`;
  const log = createEventLog(settings, write, activeSpan);
  logDiagnostics(log, otel);
  const sdk = withoutVariables(/^OTEL_LOG_LEVEL$/, () => {
    const starting = new NodeSDK({
      resource: defaultResource().merge(resourceFromAttributes(IDENTITY)),
      resourceDetectors: [envDetector],
      instrumentations: [
        new UndiciInstrumentation({ startSpanHook: redactedUrl, ignoreRequestHook: isPasswordSource }),
      ],
      logRecordProcessors: [],
      ...(otel.metricsExporter === 'prometheus' && { metricReaders: [listenForPrometheus(settings, log)] }),
      ...(otel.metricsExporter === 'none' && { metricReaders: [] }),
      ...(otel.printsSpans && {
        spanProcessors: [new SimpleSpanProcessor({ exporter: spanLines(write) })],
      }),
    });
    starting.start();
    return starting;
  });
  return {
    tracing: {
      serverSpans: new ServerSpans(otel.metricsExporter !== 'none'),
      createDatabaseSpans: (database: string, serverInUse: () => PostgresServer) =>
        new DatabaseSpans(database, serverInUse),
    },
    activeSpan,
    meter: metrics.getMeter(SCOPE),
    /** Sends everything that is queued, for `milliseconds` and one second at most. */
    flush: (milliseconds: number) => within(Math.min(milliseconds, LAST_EXPORT_MS), forceFlush()),
    /** Sends everything that is queued and stops, for one second at most. */
    shutDown: () => within(LAST_EXPORT_MS, sdk.shutdown()),
  };
}

const activeSpan: ActiveSpan = () => {
  const span = trace.getActiveSpan()?.spanContext();
  return span && isSpanContextValid(span) ? { trace_id: span.traceId, span_id: span.spanId } : undefined;
};

/**
 * Logs OpenTelemetry's own diagnostics as far as OTEL_LOG_LEVEL allows. By itself OpenTelemetry would print them to the
 * console.
 */
function logDiagnostics(log: EventLog, { logLevel, texts }: Settings['otel']): void {
  const withoutValues = (message: string) =>
    texts.reduce((text, value) => text.replaceAll(value, '***'), message);
  // The further arguments may be anything, also the headers of an exporter. A diagnostic belongs to no request.
  const at = (level: Level) =>
    AsyncResource.bind((message: unknown) =>
      log[level]('otel_diagnostic', { message: redactedMessage(withoutValues(String(message))) }),
    );
  const logger: DiagLogger = {
    error: at('error'),
    warn: at('warning'),
    info: at('info'),
    debug: at('debug'),
    verbose: at('debug'),
  };
  const minimum = DiagLogLevel[logLevel.toUpperCase() as Uppercase<typeof logLevel>];
  diag.setLogger(logger, { logLevel: minimum, suppressOverrideMessage: true });
}

/** The URL of a key server may contain a secret in its query. */
function redactedUrl({ origin, path }: { readonly origin: string; readonly path: string }): Attributes {
  const [asked = ''] = path.split('?', 1);
  const shown = redactedPath(asked);
  return { 'url.full': origin + shown, 'url.path': shown, 'url.query': undefined };
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence. */
const IDENTITY = { 'service.name': 'user-management-service', 'service.version': BUILD_VERSION };

/** For traces the API returns a proxy of the working provider; for metrics it returns the provider itself. */
async function forceFlush(): Promise<void> {
  const spans = (trace.getTracerProvider() as ProxyTracerProvider).getDelegate() as Flushing;
  await Promise.all([spans.forceFlush?.(), (metrics.getMeterProvider() as Flushing).forceFlush?.()]);
}

type Flushing = { readonly forceFlush?: () => Promise<void> };

function within(milliseconds: number, sent: Promise<void>): Promise<void> {
  return Promise.race([sent.catch(() => {}), sleep(milliseconds, undefined, { ref: false })]);
}
