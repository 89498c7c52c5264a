import type { User } from './user.ts';

const DAY = 86_400_000;

/** Numbers as two digits. */
const TWO = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));

let day = Number.NaN;
let beginOfDay = '';

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

/** As Date's `toISOString`. Users of one page were mostly created on one day, whose text is kept. */
export function momentText(milliseconds: number): string {
  const days = Math.floor(milliseconds / DAY);
  if (days !== day) {
    beginOfDay = new Date(days * DAY).toISOString().slice(0, -'00:00:00.000Z'.length);
    day = days;
  }
  const rest = milliseconds - days * DAY;
  const seconds = Math.floor(rest / 1000);
  const minutes = Math.floor(seconds / 60);
  const fraction = String(rest - seconds * 1000).padStart(3, '0');
  return `${beginOfDay}${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${fraction}Z`;
}
