/** In milliseconds. */
export const MINUTE = 60_000;

/** Of so many minutes is kept what was made of them. */
const KEPT = 256;

/**
 * What `make` makes of the text of a minute's begin, as Date's `toISOString`, for the number of the minute since 1970; kept
 * for the minutes that came last. Users and changes that are told together happened in few of them, or in those of the
 * page before. With one kept in place of many, that of an update beside that of a creation, a list of 100 took the server
 * 1.8 times as long.
 *
 * @throws {RangeError} for a minute that Date cannot tell
 */
export function keptByMinute<Made>(make: (begin: string) => Made): (minute: number) => Made {
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
