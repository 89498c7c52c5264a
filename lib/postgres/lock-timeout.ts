/**
 * As the value of a parameter: for how long the statement may wait for a lock, in milliseconds as text. It is known
 * only once the statement has its connection.
 */
export const LOCK_TIMEOUT_PARAMETER = Symbol('time left');

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** For how long a statement may wait for a lock when it has so much time left; both in milliseconds. */
export function computeLockTimeout(left: number): number {
  return Math.max(Math.floor(left - LOCK_GRACE_MS), 1);
}

/** The values, with the time that is left: so many milliseconds. */
export function fillLockTimeout(values: readonly unknown[], milliseconds: number): readonly unknown[] {
  if (!values.includes(LOCK_TIMEOUT_PARAMETER)) return values;
  const limit = String(computeLockTimeout(milliseconds));
  return values.map((value) => (value === LOCK_TIMEOUT_PARAMETER ? limit : value));
}
