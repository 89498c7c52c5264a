import * as z from 'zod';
import { cacheControl, JSON_TYPE, type Reply } from '../reply.ts';
import { type User, UserRead } from './user.ts';
import type { UserPage } from './user-list.ts';

const personal = cacheControl('private, no-cache');

/** One user, with its entity tag. */
export const userReply = {
  mediaType: JSON_TYPE,
  schema: UserRead,
  write: (user) => JSON.stringify(representation(user)),
  headers: {
    ...personal,
    ETag: { description: "The user's version, for `If-Match`.", of: ({ version }) => `"${version}"` },
  },
} as const satisfies Reply<User>;

/** The user just created, and where it is. */
export const createdUserReply: Reply<User> = {
  ...userReply,
  headers: {
    ...userReply.headers,
    Location: { description: 'The path of the new user.', of: ({ id }) => `/api/v1/users/${id}` },
  },
};

/** A page of users: a plain list, and the way to the next page where there is one. */
export const userListReply: Reply<UserPage> = {
  mediaType: JSON_TYPE,
  schema: z.array(UserRead),
  write: ({ users }) => JSON.stringify(users.map(representation)),
  headers: {
    ...personal,
    Link: {
      description: 'Where the next page is (RFC 8288); without it this is the last one.',
      example: '</api/v1/users/?sort=created_at&limit=100&skip=100>; rel="next"',
      of: ({ next }) => (next === undefined ? undefined : `</api/v1/users/?${next}>; rel="next"`),
    },
  },
};

/** The user is gone. */
export const deletedUserReply: Reply<void> = { write: () => '', headers: personal };

/** Moments as UTC with milliseconds and `Z`: the column has the same precision. */
function representation({ created_at, updated_at, version: _, ...user }: User): z.output<typeof UserRead> {
  return {
    ...user,
    created_at: new Date(created_at).toISOString(),
    updated_at: new Date(updated_at).toISOString(),
  };
}
