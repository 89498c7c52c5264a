import { textParameter, withHint } from '../http/query-parameters.ts';

const DATE_TIME = 'must be an RFC 3339 date-time with an offset, in the years 1 to 9999 in UTC';

/** RFC 3339 section 5.6, with `T` and `Z` in either case, at most 9 digits of a fraction, and no leap second. */
const DATE_TIME_PATTERN =
  /^([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))[Tt]((?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2})(?:\.([0-9]{1,9}))?([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$/;

const YEAR = '(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])';
const YEAR_1_MS = Date.parse('0001-01-01T00:00:00.000Z');
const YEAR_10000_MS = Date.parse('+010000-01-01T00:00:00.000Z');

/**
 * Parses an RFC 3339 date-time to milliseconds since 1970, rounded down and rounded up. Undefined for any other text, and
 * for a time that is not in the years 1 to 9999 in UTC.
 */
export function timestampRange(text: string) {
  const [, date = '', time, fraction = '', offset = ''] = DATE_TIME_PATTERN.exec(text) ?? [];
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0');
  const floor = Date.parse(`${date}T${time}.${milliseconds}${offset.toUpperCase()}`);
  // Date.parse reads 30 February as 2 March.
  const isDay = date !== '' && new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
  if (!isDay || floor < YEAR_1_MS || floor >= YEAR_10000_MS) return undefined;
  return { floor, ceiling: /[1-9]/.test(fraction.slice(3)) ? floor + 1 : floor };
}

/** A query parameter with an RFC 3339 date-time. */
export function dateTime(description: string, example: string) {
  const isAllowed = (text: string) => timestampRange(text) !== undefined;
  return textParameter(isAllowed, withHint(DATE_TIME), {
    format: 'date-time',
    minLength: '0001-01-01T00:00:00Z'.length,
    maxLength: '0001-01-01T00:00:00.123456789+00:00'.length,
    // Only the last day of the year 0000 may be in the year 1 in UTC.
    pattern: DATE_TIME_PATTERN.source.replace('[0-9]{4}', YEAR).replace('(', '(0000-12-31|'),
    description,
    examples: [example],
  });
}
