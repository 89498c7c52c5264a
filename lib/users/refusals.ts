import { Problem } from '../problem.ts';

/** There is no user with the id in the path. */
export function noSuchUser(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id.' });
}

/** The unique index knows the email already, in whatever case. */
export function emailTaken(): Problem {
  return new Problem('conflict_error', { detail: 'A user with this email exists already.' });
}

/** The user is not, or no longer, of a version that `If-Match` names (RFC 9110 section 13.1.1). */
export function versionChanged(): Problem {
  return new Problem('precondition_failed_error', {
    detail: 'The user has changed: If-Match does not hold.',
  });
}
