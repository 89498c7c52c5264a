/**
 * As the value of a parameter: for how long the statement may wait for a lock, in milliseconds as text. It is known only
 * once the statement has its connection.
 */
export const TIME_LEFT = Symbol('time left');

/** In milliseconds: PostgreSQL's refusal has to come before the request's time is up. */
const LOCK_GRACE = 200;

/** For how long a statement may wait for a lock when it has so much time left; both in milliseconds. */
export function lockTimeoutIn(left: number): number {
  return Math.max(Math.floor(left - LOCK_GRACE), 1);
}

/** The values, with so many milliseconds as the time that is left. */
export function withTimeLeft(values: readonly unknown[], milliseconds: number): readonly unknown[] {
  if (!values.includes(TIME_LEFT)) return values;
  return values.map((value) => (value === TIME_LEFT ? String(milliseconds) : value));
}
