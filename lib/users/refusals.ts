import { Problem, type ValueFault } from '../http/problem.ts';
import { pointerTo, valuesNotAllowed } from '../http/value-faults.ts';

/** No user has the id in the path. */
export function noSuchUser(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id.' });
}

/** The unique index already has the email, in any case. */
export function emailTaken(): Problem {
  return new Problem('conflict_error', { detail: 'A user with this email already exists.' });
}

/** The emails of these items of a batch belong to users, or to earlier items that are stored. */
export function emailsTaken(indexes: readonly number[]): Problem {
  return new Problem('conflict_error', {
    detail: 'Some emails of the batch are already taken. See errors.',
    errors: indexes.map((index) => emailFault(index, 'must not be the email of an existing user')),
  });
}

/** The emails of these items occur earlier in the same batch, in any case. */
export function emailsRepeated(indexes: readonly number[]): Problem {
  return valuesNotAllowed(indexes.map((index) => emailFault(index, REPEATED)));
}

/** The fault of an email that occurs earlier in the same batch. */
export const REPEATED = 'must not repeat the email of an earlier item';

function emailFault(index: number, detail: string): ValueFault {
  return { pointer: pointerTo(['items', index, 'email']), detail };
}
