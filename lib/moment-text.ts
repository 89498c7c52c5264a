const MINUTE = 60_000;

/** The seconds and milliseconds that a moment ends with, as texts. */
const SECONDS = Array.from({ length: 60 }, (_, number) => `${String(number).padStart(2, '0')}.`);
const MILLISECONDS = Array.from({ length: 1000 }, (_, number) => `${String(number).padStart(3, '0')}Z`);

let minute = Number.NaN;
let beginOfMinute = '';

/**
 * As Date's `toISOString`. What is on one page happened mostly one soon after the other, so that the text of the
 * minute is kept: with that of the day alone the JSON of 100 users cost a tenth more.
 */
export function momentText(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / MINUTE);
  if (minutes !== minute) {
    beginOfMinute = new Date(minutes * MINUTE).toISOString().slice(0, -'00.000Z'.length);
    minute = minutes;
  }
  const rest = milliseconds - minutes * MINUTE;
  const seconds = Math.floor(rest / 1000);
  return `${beginOfMinute}${SECONDS[seconds]}${MILLISECONDS[rest - seconds * 1000]}`;
}
