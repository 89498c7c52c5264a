import { createMinuteCache, MINUTE } from './minute-cache.ts';

/** The seconds and milliseconds at the end of a time, as texts. */
const SECONDS = Array.from({ length: 60 }, (_, number) => `${String(number).padStart(2, '0')}.`);
const MILLISECONDS = Array.from({ length: 1000 }, (_, number) => `${String(number).padStart(3, '0')}Z`);

const beginOf = createMinuteCache((begin) => begin.slice(0, -'00.000Z'.length));

/** A time as Date's `toISOString`. With only the text of the day cached, the JSON of 100 users cost a tenth more. */
export function isoTime(milliseconds: number): string {
  const minute = Math.floor(milliseconds / MINUTE);
  const rest = milliseconds - minute * MINUTE;
  const seconds = Math.floor(rest / 1000);
  return `${beginOf(minute)}${SECONDS[seconds]}${MILLISECONDS[rest - seconds * 1000]}`;
}
