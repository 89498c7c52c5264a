import { Logger, LogItem } from '@aws-lambda-powertools/logger';
import type { LogAttributes } from '@aws-lambda-powertools/logger/types';
import { currentRequest } from '../http/request-scope.ts';
import { type Settings, withoutVariables } from '../settings/settings.ts';
import type { WriteLine } from './line-writer.ts';
import { type Cause, redactedCause } from './redaction.ts';

/** The fields of an event. A field that is undefined, null or empty is left out. */
export type EventFields = Readonly<Record<string, unknown>>;

const LEVELS = ['debug', 'info', 'warning', 'error'] as const;

/** The severity of an event. */
export type Level = (typeof LEVELS)[number];

/** The event log: one event is one line. Event names are in snake_case. */
export type EventLog = Readonly<Record<Level, (event: string, fields?: EventFields) => void>>;

/** The ids of the span that is active at this moment, for a line of the log. */
export type ActiveSpan = () => { readonly trace_id: string; readonly span_id: string } | undefined;

/** Creates the event log of an instance: JSON in production, readable lines in development. */
export function createEventLog(
  { logLevel, environment }: Pick<Settings, 'logLevel' | 'environment'>,
  write: WriteLine,
  activeSpan?: ActiveSpan,
): EventLog {
  const print = environment === 'production' ? write : (line: string) => write(prettyLine(JSON.parse(line)));
  const logger = withoutVariables(/./, () => new EventLogger(print));

  function logged(level: Level) {
    const severity = LEVELS.indexOf(level);
    if (severity < LEVELS.indexOf(logLevel)) return () => {};
    return (event: string, fields: EventFields = {}) => {
      const line = {
        timestamp: new Date().toISOString(),
        level,
        event,
        request_id: currentRequest()?.requestId,
        ...activeSpan?.(),
        ...fields,
      };
      logger.printLog(severity, new LogItem({ attributes: line as LogAttributes }));
    };
  }

  return { debug: logged('debug'), info: logged('info'), warning: logged('warning'), error: logged('error') };
}

/**
 * Powertools' logger, used only to print: see README.md. The values of events are plain, so a line needs no replacer. A
 * replacer takes three times as long as everything else here: a sixth of the server's time for a batch of 100.
 */
class EventLogger extends Logger {
  readonly #print: WriteLine;

  constructor(print: WriteLine) {
    super();
    this.#print = print;
  }

  override printLog(_severity: number, item: LogItem): void {
    item.prepareForPrint();
    this.#print(JSON.stringify(item.getAttributes()));
  }
}

/**
 * The log of an activity that is repeated: an event at the first failure in a row, and whenever the cause differs from
 * the previous one.
 */
export class FailureLog {
  readonly #log: EventLog;
  readonly #event: string;
  #previous: string | undefined;

  constructor(log: EventLog, event: string) {
    this.#log = log;
    this.#event = event;
  }

  /** @returns whether the failure was logged */
  onFailure(thrown: unknown): boolean {
    const cause = redactedCause(thrown);
    const current = JSON.stringify({ cause }, (member, value) => (member === 'stack' ? undefined : value));
    if (current === this.#previous) return false;
    this.#previous = current;
    this.#log.warning(this.#event, { cause });
    return true;
  }

  onSuccess(): void {
    this.#previous = undefined;
  }
}

type Event = { timestamp: string; level: string; event: string; cause?: Cause };

const COLOURS: Readonly<Record<string, number>> = { debug: 90, info: 32, warning: 33, error: 31 };

/** An event as a readable line. Its causes follow on indented lines of their own. */
export function prettyLine({ timestamp, level, event, cause, ...fields }: Event): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const line = [timestamp.slice(11, 23), coloured(level), event, ...pairs].join(' ');
  return [line, ...linesOf(cause)].join('\n');
}

function linesOf(cause: Cause | undefined, before = ''): readonly string[] {
  if (!cause) return [];
  const { name, code, message, stack = `${name}: ${message}` } = cause;
  return [
    ...`${before}${stack}`.split(/\r?\n|\r/).map((line) => `  ${line}`),
    ...(code === undefined ? [] : [`  code=${JSON.stringify(code)}`]),
    ...linesOf(cause.cause, 'caused by '),
  ];
}

function coloured(level: string): string {
  const padded = level.padEnd(7);
  return process.stdout.isTTY ? `\x1b[${COLOURS[level]}m${padded}\x1b[0m` : padded;
}
