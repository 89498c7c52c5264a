import { Problem, type ValueFault } from '../problem.ts';
import { pointerTo, valuesNotAllowed } from '../value-faults.ts';

/** There is no user with the id in the path. */
export function noSuchUser(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id.' });
}

/** The unique index knows the email already, in whatever case. */
export function emailTaken(): Problem {
  return new Problem('conflict_error', { detail: 'A user with this email already exists.' });
}

/** The emails of these items of a batch are those of users, or of earlier items that are stored. */
export function emailsTaken(indexes: readonly number[]): Problem {
  return new Problem('conflict_error', {
    detail: 'Some emails of the batch are already taken. See errors.',
    errors: indexes.map((index) => emailFault(index, 'must not be the email of an existing user')),
  });
}

/** The emails of these items stand earlier in the same batch, in whatever case. */
export function emailsRepeated(indexes: readonly number[]): Problem {
  return valuesNotAllowed(indexes.map((index) => emailFault(index, REPEATED)));
}

/** What is wrong with an email that stands earlier in the same batch. */
export const REPEATED = 'must not repeat the email of an earlier item';

function emailFault(index: number, detail: string): ValueFault {
  return { pointer: pointerTo(['items', index, 'email']), detail };
}
