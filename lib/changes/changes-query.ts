import * as z from 'zod';
import type { ValueFault } from '../http/problem.ts';
import { integerParameter, textParameter } from '../http/query-parameters.ts';
import { MAX_HEAD_LENGTH, NO_NUL_PATTERN } from '../text.ts';
import { MAX_PAGE_SIZE } from '../users/user.ts';
import { parseChangeCursor } from './change-cursor.ts';

/** The rule for a cursor, which belongs to one feed. */
const CURSOR = 'must be a cursor from a Link header of this path';

const limit = { description: 'Maximum number of changes to return.' };

/** A cursor is base64url. There is room for a longer one in a later version. */
const cursorForm = (minLength: number) => ({ pattern: '^[A-Za-z0-9_-]+$', minLength, maxLength: 128 });

export const ChangesQuery = z
  .object({
    cursor: z
      .string()
      .transform((cursor) => (cursor === 'now' ? cursor : parseChangeCursor(cursor)))
      .refine((place) => place === 'now' || (place && !place.userId), `${CURSOR}, or now`)
      .optional()
      .meta({
        description:
          'Start of the page: a cursor from a `Link` header, or `now` for the end of the feed. Without it, the oldest.',
        ...cursorForm(3),
      }),
    exclude_actor: textParameter(
      (actor) => actor !== '' && !actor.includes('\0'),
      'must have at least 1 character and no U+0000',
      {
        description: 'Leaves out the changes of this actor (`sub`).',
        minLength: 1,
        maxLength: MAX_HEAD_LENGTH,
        pattern: NO_NUL_PATTERN,
      },
    ),
    wait: integerParameter(0, 20, 0).meta({
      description: 'Maximum number of seconds to wait for a change.',
    }),
    limit: integerParameter(0, MAX_PAGE_SIZE, 100).meta({
      description: `${limit.description} 0 is allowed only with \`cursor=now\`.`,
    }),
  })
  .refine(({ cursor, limit }) => limit !== 0 || cursor === 'now', {
    path: ['limit'],
    error: 'must be at least 1, or 0 with cursor=now',
    when: () => true,
  });
export type ChangesQuery = z.output<typeof ChangesQuery>;

/** The query of the changes of one user. `cursorOfUser` checks that the cursor belongs to this user. */
export const UserChangesQuery = z.object({
  cursor: z
    .string()
    .transform(parseChangeCursor)
    .refine((place) => place !== undefined, CURSOR)
    .optional()
    .meta({
      description: 'Start of the page: a cursor from a `Link` header. Without it, the oldest.',
      // It contains the user's id.
      ...cursorForm(46),
    }),
  limit: integerParameter(1, MAX_PAGE_SIZE, 100).meta(limit),
});
export type UserChangesQuery = z.output<typeof UserChangesQuery>;

/** Checks that the cursor belongs to the user in the path. */
export function cursorOfUser(
  { user_id }: { readonly user_id?: string | undefined },
  { cursor }: { readonly cursor?: string | undefined },
): readonly ValueFault[] {
  const place = parseChangeCursor(cursor);
  if (!place || place.userId === user_id?.toLowerCase()) return [];
  return [{ parameter: 'cursor', detail: CURSOR }];
}
