/**
 * As the value of a parameter: for how long the statement may wait for a lock, in milliseconds as text. It is known only
 * once the statement has its connection.
 */
export const TIME_LEFT = Symbol('time left');

/** In milliseconds: PostgreSQL's refusal has to come before the request's time is up. */
const LOCK_GRACE = 200;

/** The values, with the time that is left: so many milliseconds. */
export function withTimeLeft(values: readonly unknown[], milliseconds: number): readonly unknown[] {
  if (!values.includes(TIME_LEFT)) return values;
  const limit = String(Math.max(Math.floor(milliseconds - LOCK_GRACE), 1));
  return values.map((value) => (value === TIME_LEFT ? limit : value));
}
