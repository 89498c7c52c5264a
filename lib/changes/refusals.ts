import { Problem } from '../problem.ts';

/** What came after the cursor is not kept any more, or the cursor is of a feed that was lost. */
export function cursorExpired(): Problem {
  return new Problem('cursor_expired_error', {
    detail:
      'Changes after this cursor are not kept any more: read the users anew, and go on from cursor=now.',
  });
}

/** Neither a user nor a change has this id. */
export function noSuchUserOrChange(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id, nor a change of one.' });
}
