import { Problem, RETRY_SOON } from '../http/problem.ts';

export function keyInUse(cause?: unknown): Problem {
  return new Problem('idempotency_key_in_use_error', {
    detail: 'Another request with this Idempotency-Key is still in progress. Try again later.',
    headers: RETRY_SOON,
    cause,
  });
}

export function keyReused(): Problem {
  return new Problem('idempotency_key_reused_error', {
    detail: 'This Idempotency-Key was already used for a request with different values.',
  });
}

export function createdAndGone(): Problem {
  return new Problem('gone_error', { detail: 'A user that this request created has since been deleted.' });
}

export const KEY_REFUSALS = [keyInUse, createdAndGone, keyReused];
