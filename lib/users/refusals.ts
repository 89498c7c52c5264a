import { Problem, type ValueFault } from '../problem.ts';
import { pointerTo, valuesNotAllowed } from '../value-faults.ts';

/** No user has the id in the path. */
export function noSuchUser(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id.' });
}

/** The unique index has the email already, in any case. */
export function emailTaken(): Problem {
  return new Problem('conflict_error', { detail: 'A user with this email exists already.' });
}

/** The emails of these items of a batch belong to users, or to earlier items that are stored. */
export function emailsTaken(indexes: readonly number[]): Problem {
  return new Problem('conflict_error', {
    detail: 'Emails of the batch belong to users already: see errors.',
    errors: indexes.map((index) => emailFault(index, 'must not belong to another user')),
  });
}

/** The emails of these items occur earlier in the same batch, in any case. */
export function emailsRepeated(indexes: readonly number[]): Problem {
  return valuesNotAllowed(indexes.map((index) => emailFault(index, REPEATED)));
}

/** The fault of an email that occurs earlier in the same batch. */
export const REPEATED = 'must not stand earlier in the batch';

function emailFault(index: number, detail: string): ValueFault {
  return { pointer: pointerTo(['items', index, 'email']), detail };
}
