import * as z from 'zod';
import type { Outcome } from '../idempotency/carry-out-once.ts';
import { cacheControl, JSON_TYPE, NEXT_LINK, type Reply } from '../reply.ts';
import { UUID_PATTERN } from '../text.ts';
import { MAX_PAGE_SIZE, type User, UserRead } from './user.ts';
import { userJson } from './user-json.ts';
import type { UserPage } from './user-list.ts';
import { usersJson } from './users-page.ts';

/** Answers about users are for their caller alone, who asks again before using one. */
export const personal = cacheControl('private, no-cache');

/** One user, with its entity tag. */
export const userReply = {
  mediaType: JSON_TYPE,
  schema: UserRead,
  write: userJson,
  headers: {
    ...personal,
    ETag: {
      description: "The user's version, for `If-Match`.",
      values: { pattern: '^"[1-9][0-9]*"$', maxLength: 21 },
      of: ({ version }) => `"${version}"`,
    },
  },
} as const satisfies Reply<User>;

/** Whether a request under an idempotency key has been answered again. */
export const replayed = {
  'Idempotency-Replayed': {
    description: 'Present if the request was already carried out with this `Idempotency-Key`.',
    values: { enum: ['true'] },
    example: 'true',
    isOptional: true,
    of: ({ isReplay }: { readonly isReplay: boolean }) => (isReplay ? 'true' : undefined),
  },
} as const;

/** The user just created, or created by the same request before, and where it is. */
export const createdUserReply: Reply<Outcome<User>> = {
  ...userReply,
  write: ({ created }) => userReply.write(created),
  headers: {
    ...personal,
    ...replayed,
    ETag: { ...userReply.headers.ETag, of: ({ created }) => userReply.headers.ETag.of(created) },
    Location: {
      description: 'The path of the new user.',
      values: { pattern: `^/api/v1/users/${UUID_PATTERN}$`, maxLength: 50 },
      of: ({ created }) => `/api/v1/users/${created.id}`,
    },
  },
};

/** A page of users: a plain list, and the way to the next page where there is one. */
export const userListReply: Reply<UserPage> = {
  mediaType: JSON_TYPE,
  schema: z.array(UserRead).max(MAX_PAGE_SIZE),
  write: ({ rows }) => usersJson(rows),
  headers: {
    ...personal,
    Link: {
      isOptional: true,
      description: 'Link to the next page (RFC 8288). Absent on the last page.',
      values: NEXT_LINK,
      example: '</api/v1/users/?sort=created_at&limit=100&skip=100>; rel="next"',
      of: ({ next }) => (next === undefined ? undefined : `</api/v1/users/?${next}>; rel="next"`),
    },
  },
};

/** The user is gone. */
export const deletedUserReply: Reply<void> = { write: () => '', headers: personal };

/** Moments as UTC with milliseconds and `Z`: the column has the same precision. */
export function representation({
  created_at,
  updated_at,
  version: _,
  ...user
}: User): z.output<typeof UserRead> {
  return {
    ...user,
    created_at: new Date(created_at).toISOString(),
    updated_at: new Date(updated_at).toISOString(),
  };
}
