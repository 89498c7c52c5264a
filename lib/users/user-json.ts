import type { User } from './user.ts';

const MINUTE = 60_000;

/** The seconds and milliseconds that a moment ends with, as texts. */
const SECONDS = Array.from({ length: 60 }, (_, number) => `${String(number).padStart(2, '0')}.`);
const MILLISECONDS = Array.from({ length: 1000 }, (_, number) => `${String(number).padStart(3, '0')}Z`);

let minute = Number.NaN;
let beginOfMinute = '';

/**
 * The JSON of a user, to the byte as `JSON.stringify` writes its representation. In one piece, and without a Date for
 * each moment: of a page of 100 users that took the server 205 of 525 microseconds.
 */
export function userJson({ id, email, full_name, is_active, created_at, updated_at }: User): string {
  const created = momentText(created_at);
  const updated = updated_at === created_at ? created : momentText(updated_at);
  const name = full_name === null ? 'null' : JSON.stringify(full_name);
  return `{"id":"${id}","email":${JSON.stringify(email)},"full_name":${name},"is_active":${is_active},"created_at":"${created}","updated_at":"${updated}"}`;
}

/**
 * As Date's `toISOString`. Users of one page were mostly created one soon after the other, so that the text of the minute
 * is kept: with that of the day alone the JSON of a page cost a tenth more.
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
