import { Problem } from '../http/problem.ts';

/** The changes after the cursor have been deleted, or the change of the cursor was lost. */
export function cursorExpired(): Problem {
  return new Problem('cursor_expired_error', {
    detail:
      'The changes after this cursor are no longer available. Get a new cursor with cursor=now, read all users, then follow the changes from that cursor.',
  });
}

export function noSuchUserOrChange(): Problem {
  return new Problem('not_found_error', {
    detail: 'There is neither a user with this id nor a change of one.',
  });
}
