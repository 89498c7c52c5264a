import { Problem } from '../problem.ts';

/** There is no user with the id in the path. */
export function noSuchUser(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id.' });
}

/** The unique index knows the email already, in whatever case. */
export function emailTaken(): Problem {
  return new Problem('conflict_error', { detail: 'A user with this email exists already.' });
}
