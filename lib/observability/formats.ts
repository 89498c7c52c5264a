import { LogFormatter, LogItem } from '@aws-lambda-powertools/logger';
import type { LogAttributes, UnformattedAttributes } from '@aws-lambda-powertools/logger/types';
import { currentRequest } from '../request-scope.ts';
import type { Settings } from '../settings.ts';
import type { WriteLine } from './line-writer.ts';
import type { ActiveSpan } from './tracing.ts';

type LogLine = { timestamp: string; level: string; event: string } & Record<string, unknown>;

/** How log lines look in this environment, and how one is printed. */
export function formatterFor(
  environment: Settings['environment'],
  write: WriteLine,
  activeSpan?: ActiveSpan,
) {
  const formatter = new EventFormatter(activeSpan);
  if (environment === 'production') return { formatter, print: write };
  return { formatter, print: (line: string) => write(forPeople(JSON.parse(line))) };
}

/** An event with the ids of the request and the span that are active at this moment. */
class EventFormatter extends LogFormatter {
  readonly #activeSpan: ActiveSpan | undefined;

  constructor(activeSpan: ActiveSpan | undefined) {
    super();
    this.#activeSpan = activeSpan;
  }

  override formatAttributes(base: UnformattedAttributes, { fields }: LogAttributes): LogItem {
    const line: LogLine = {
      timestamp: base.timestamp.toISOString(),
      level: base.logLevel === 'WARN' ? 'warning' : base.logLevel.toLowerCase(),
      event: base.message,
      request_id: currentRequest()?.requestId,
      ...this.#activeSpan?.(),
      ...(fields as Record<string, unknown>),
    };
    return new LogItem({ attributes: line as LogAttributes });
  }
}

const COLOURS: Readonly<Record<string, number>> = { debug: 90, info: 32, warning: 33, error: 31 };

function forPeople({ timestamp, level, event, ...fields }: LogLine): string {
  const { cause, ...rest } = fields as { cause?: { stack?: string } };
  const pairs = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const line = [timestamp.slice(11, 23), coloured(level), event, ...pairs].join(' ');
  return cause?.stack ? `${line}\n${cause.stack}` : line;
}

function coloured(level: string): string {
  const padded = level.padEnd(7);
  return process.stdout.isTTY ? `\x1b[${COLOURS[level]}m${padded}\x1b[0m` : padded;
}
