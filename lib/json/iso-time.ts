/** In milliseconds. */
export const MINUTE = 60_000;

/** Number of minutes whose result is cached. */
const KEPT = 256;

/**
 * A function that returns `make(begin)` for the number of a minute since 1970. `begin` is the beginning of that minute
 * as Date's `toISOString`. The results of the latest minutes are cached. The users and changes of a page belong to few
 * minutes, or to those of the page before. With one cached minute instead of many, a list of 100 took the server 1.8
 * times as long, because an update and a creation alternate.
 *
 * @throws {RangeError} for a minute beyond the range of Date
 */
export function createMinuteCache<Made>(make: (begin: string) => Made): (minute: number) => Made {
  const kept: { readonly minute: number; readonly made: Made }[] = [];

  return (minute) => {
    const place = minute & (KEPT - 1);
    const known = kept[place];
    if (known?.minute === minute) return known.made;
    const made = make(new Date(minute * MINUTE).toISOString());
    kept[place] = { minute, made };
    return made;
  };
}

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
