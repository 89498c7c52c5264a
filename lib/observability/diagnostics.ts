import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { Settings } from '../settings.ts';
import type { EventLog, Level } from './event-log.ts';
import { redactedMessage } from './redaction.ts';

const MINIMUM: Readonly<Record<Settings['otel']['logLevel'], DiagLogLevel>> = {
  none: DiagLogLevel.NONE,
  error: DiagLogLevel.ERROR,
  warn: DiagLogLevel.WARN,
  info: DiagLogLevel.INFO,
  debug: DiagLogLevel.DEBUG,
  verbose: DiagLogLevel.VERBOSE,
  all: DiagLogLevel.ALL,
};

/** Logs what OpenTelemetry says of itself, where OTEL_LOG_LEVEL asks for it; by itself it would print to the console. */
export function logDiagnostics(log: EventLog, { logLevel }: Settings['otel']): void {
  // What is handed over beside the message may be anything, the headers of an exporter too.
  const at = (level: Level) => (message: string) =>
    log[level]('otel_diagnostic', { message: redactedMessage(String(message)) });
  const logger: DiagLogger = {
    error: at('error'),
    warn: at('warning'),
    info: at('info'),
    debug: at('debug'),
    verbose: at('debug'),
  };
  diag.setLogger(logger, { logLevel: MINIMUM[logLevel], suppressOverrideMessage: true });
}
