/** A time in milliseconds since 1970, rounded down and rounded up. */
export type TimestampRange = { readonly floor: number; readonly ceiling: number };

/** RFC 3339 section 5.6, with `T` and `Z` in either case, at most 9 digits of a fraction, and no leap second. */
const DATE_TIME =
  /^([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))[Tt]((?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2})(?:\.([0-9]{1,9}))?([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$/;

/** The form of a date-time, for the documentation. */
export const DATE_TIME_FORM = {
  format: 'date-time',
  minLength: '0001-01-01T00:00:00Z'.length,
  maxLength: '0001-01-01T00:00:00.123456789+00:00'.length,
  pattern: DATE_TIME.source,
};

const YEAR_1 = Date.parse('0001-01-01T00:00:00.000Z');
const YEAR_10000 = Date.parse('+010000-01-01T00:00:00.000Z');

/** Parses an RFC 3339 date-time; undefined for any other text, and outside of the years 1 to 9999 in UTC. */
export function timestampRange(text: string): TimestampRange | undefined {
  const [, date = '', time, fraction = '', offset = ''] = DATE_TIME.exec(text) ?? [];
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0');
  const floor = Date.parse(`${date}T${time}.${milliseconds}${offset.toUpperCase()}`);
  // Date.parse reads 30 February as 2 March.
  const isDay = date !== '' && new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
  if (!isDay || floor < YEAR_1 || floor >= YEAR_10000) return undefined;
  return { floor, ceiling: /[1-9]/.test(fraction.slice(3)) ? floor + 1 : floor };
}
