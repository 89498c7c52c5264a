import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { Settings } from '../settings/settings.ts';
import type { EventLog, Level } from './event-log.ts';
import { redactedCause, redactedMessage } from './redaction.ts';

/**
 * Logs OpenTelemetry's own diagnostics as far as OTEL_LOG_LEVEL allows. By itself OpenTelemetry would print them to the
 * console. A taken port of the Prometheus exporter is always logged, because nothing else shows that there are no
 * metrics.
 */
export function logDiagnostics(log: EventLog, { logLevel }: Settings['otel']): void {
  // The further arguments may be anything, also the headers of an exporter.
  const at = (level: Level) => (message: unknown) =>
    log[level]('otel_diagnostic', { message: redactedMessage(String(message)) });
  const logger: DiagLogger = {
    error(message: unknown) {
      if (isListenError(message)) log.error('metrics_not_served', { cause: redactedCause(message) });
      else if (logLevel !== 'none') at('error')(message);
    },
    warn: at('warning'),
    info: at('info'),
    debug: at('debug'),
    verbose: at('debug'),
  };
  const given = DiagLogLevel[logLevel.toUpperCase() as Uppercase<typeof logLevel>];
  const minimum = Math.max(given, DiagLogLevel.ERROR);
  diag.setLogger(logger, { logLevel: minimum, suppressOverrideMessage: true });
}

function isListenError(message: unknown): boolean {
  return message instanceof Error && 'syscall' in message && message.syscall === 'listen';
}
