import { Logger } from '@aws-lambda-powertools/logger';
import type { Settings } from '../settings.ts';
import { formatterFor } from './formats.ts';
import type { WriteLine } from './line-writer.ts';
import type { Tracing } from './tracing.ts';

/** An event's fields; a field that is undefined is left out. */
export type EventFields = Readonly<Record<string, unknown>>;

/** The event log: one event, one line. Events are named in snake_case. */
export type EventLog = Readonly<
  Record<'debug' | 'info' | 'warning' | 'error', (event: string, fields?: EventFields) => void>
>;

/** Powertools' name of each level. */
const LEVELS = { debug: 'DEBUG', info: 'INFO', warning: 'WARN', error: 'ERROR' } as const;

/** The event log of an instance: JSON in production, lines for people in development; with the ids of `tracing`. */
export function createEventLog(
  { logLevel, environment }: Pick<Settings, 'logLevel' | 'environment'>,
  write: WriteLine,
  tracing?: Tracing,
): EventLog {
  const { formatter, print } = formatterFor(environment, write, tracing?.activeSpan);
  const logger = new Logger({ logLevel: LEVELS[logLevel], logFormatter: formatter });
  // All levels go to one place; by itself the logger would split them over two streams.
  Object.assign(logger, { console: { debug: print, info: print, warn: print, error: print } });
  return {
    debug: (event, fields = {}) => logger.debug(event, { fields }),
    info: (event, fields = {}) => logger.info(event, { fields }),
    warning: (event, fields = {}) => logger.warn(event, { fields }),
    error: (event, fields = {}) => logger.error(event, { fields }),
  };
}
