import * as z from 'zod';
import { linkToNext } from '../http/next-link.ts';
import { cacheControl, JSON_TYPE, type Reply } from '../http/reply.ts';
import { isoTime } from '../json/iso-time.ts';
import { MAX_HEAD_LENGTH, UUID_PATTERN } from '../text.ts';
import { fields, isOmittedIfNull } from './fields.ts';
import type { Outcome } from './idempotent-creates.ts';
import { MAX_PAGE_SIZE, USERS_PATH, type User, UserRead } from './user.ts';

/** The fields in JSON: the text before a value, and the text for null. */
export const members = fields.map((field, index) => {
  const begin = `${index === 0 ? '{' : ','}${JSON.stringify(field.name)}:`;
  return { ...field, begin, ifNull: isOmittedIfNull(field) ? '' : `${begin}null` };
});

/**
 * A user in JSON, identical to `JSON.stringify` of its representation. Joined texts take two thirds of the time of an
 * object for it.
 */
export function userJson(user: User): string {
  let json = '';
  for (const { name, sqlType, begin, ifNull } of members) {
    const value = user[name];
    if (value === null) json += ifNull;
    else if (sqlType === 'timestamptz') json += `${begin}"${isoTime(Number(value))}"`;
    else json += begin + JSON.stringify(value);
  }
  return `${json}}`;
}

/** Only the caller may cache a response about users, and must revalidate it before each use. */
export const personal = cacheControl('private, no-cache');

export const userReply = {
  mediaType: JSON_TYPE,
  schema: UserRead,
  write: userJson,
  headers: {
    ...personal,
    ETag: {
      description: "The user's version, for `If-Match`.",
      values: { pattern: '^\\x22[1-9][0-9]*\\x22$', maxLength: 21 },
      example: '"3"',
      of: ({ version }) => `"${version}"`,
    },
  },
} as const satisfies Reply<User>;

export const replayed = {
  'Idempotency-Replayed': {
    description: 'Present if the request was already carried out with this `Idempotency-Key`.',
    values: { enum: ['true'] },
    example: 'true',
    isOptional: true,
    of: ({ isReplay }: { readonly isReplay: boolean }) => (isReplay ? 'true' : undefined),
  },
} as const;

/** The created user and its location; in a replay the user that the first request created. */
export const createdUserReply: Reply<Outcome<User>> = {
  ...userReply,
  write: ({ created }) => userReply.write(created),
  headers: {
    ...personal,
    ...replayed,
    ETag: { ...userReply.headers.ETag, of: ({ created }) => userReply.headers.ETag.of(created) },
    Location: {
      description: 'The path of the new user.',
      values: {
        pattern: `^(?:/[A-Za-z0-9._~/-]*)?${USERS_PATH}/${UUID_PATTERN}$`,
        maxLength: MAX_HEAD_LENGTH,
      },
      example: `${USERS_PATH}/0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70`,
      of: ({ created }, basePath) => `${basePath}${USERS_PATH}/${created.id}`,
    },
  },
};

/** A page of the list in JSON, and the path of the next one with its query; undefined at the end. */
export type UserPage = { readonly json: string | Buffer; readonly next: string | undefined };

/** A page of users: a plain list, and the link to the next page if there is one. */
export const userListReply: Reply<UserPage> = {
  mediaType: JSON_TYPE,
  schema: z.array(UserRead).max(MAX_PAGE_SIZE),
  write: ({ json }) => json,
  headers: {
    ...personal,
    Link: {
      ...linkToNext('Absent on the last page.', `${USERS_PATH}/?sort=created_at&limit=100&skip=100`),
      isOptional: true,
    },
  },
};

export const deletedUserReply: Reply<void> = { write: () => '', headers: personal };
