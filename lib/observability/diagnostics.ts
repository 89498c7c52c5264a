import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { Settings } from '../settings.ts';
import type { EventLog, Level } from './event-log.ts';
import { redactedCause, redactedMessage } from './redaction.ts';

const MINIMUM: Readonly<Record<Settings['otel']['logLevel'], DiagLogLevel>> = {
  none: DiagLogLevel.NONE,
  error: DiagLogLevel.ERROR,
  warn: DiagLogLevel.WARN,
  info: DiagLogLevel.INFO,
  debug: DiagLogLevel.DEBUG,
  verbose: DiagLogLevel.VERBOSE,
  all: DiagLogLevel.ALL,
};

/**
 * Logs what OpenTelemetry says of itself, where OTEL_LOG_LEVEL asks for it; by itself it would print to the console. In any
 * case it is told when the port is taken from which Prometheus pulls metrics: nothing else shows that there are none.
 */
export function logDiagnostics(log: EventLog, { logLevel }: Settings['otel']): void {
  // What is handed over beside the message may be anything, the headers of an exporter too.
  const at = (level: Level) => (message: unknown) =>
    log[level]('otel_diagnostic', { message: redactedMessage(String(message)) });
  const atError = logLevel === 'none' ? () => {} : at('error');
  const logger: DiagLogger = {
    error(message: unknown) {
      if (isListenError(message)) log.error('metrics_not_served', { cause: redactedCause(message) });
      else atError(message);
    },
    warn: at('warning'),
    info: at('info'),
    debug: at('debug'),
    verbose: at('debug'),
  };
  const minimum = Math.max(MINIMUM[logLevel], DiagLogLevel.ERROR);
  diag.setLogger(logger, { logLevel: minimum, suppressOverrideMessage: true });
}

function isListenError(message: unknown): boolean {
  return message instanceof Error && 'syscall' in message && message.syscall === 'listen';
}
