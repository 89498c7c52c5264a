import type { Cause } from './redaction.ts';

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
