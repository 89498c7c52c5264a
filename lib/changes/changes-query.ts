import * as z from 'zod';
import type { ValueFault } from '../problem.ts';
import { integerParameter } from '../text.ts';
import { type Place, placeIn } from './change-cursor.ts';

/** What is wrong with a cursor that is none, or is of another feed. */
const OTHER_CURSOR = 'must be that of a link of this path';

const limit = { description: 'How many changes to return at most.' };

/** The query of the changes of all users. */
export const ChangesQuery = z
  .object({
    cursor: z
      .string()
      .refine((cursor) => cursor === 'now' || placeFor(cursor, undefined) !== undefined, OTHER_CURSOR)
      .optional()
      .meta({
        description:
          'Where the page begins: taken from `Link`, or `now` for the end of the feed. Without it, the oldest.',
      }),
    exclude_actor: z
      .string()
      .refine(
        (actor) => actor !== '' && !actor.includes('\0'),
        'must have 1 character or more, and not U+0000',
      )
      .optional()
      .meta({ description: 'Leaves out the changes of this actor (`sub`).' }),
    wait: integerParameter(0, 20, 0).meta({
      description: 'Seconds for which the answer is held back while there is no change to tell.',
    }),
    limit: integerParameter(0, 1000, 100).meta(limit),
  })
  .superRefine(
    ({ cursor, limit }, context) => {
      if (limit !== 0 || cursor === 'now') return;
      context.addIssue({
        code: 'custom',
        path: ['limit'],
        message: 'must be 1 or more, except with cursor=now',
      });
    },
    { when: () => true },
  );
export type ChangesQuery = z.output<typeof ChangesQuery>;

/** The query of the changes of one user; whose cursor it is, `cursorOfUser` judges. */
export const UserChangesQuery = z.object({
  cursor: z
    .string()
    .refine((cursor) => placeIn(cursor) !== undefined, OTHER_CURSOR)
    .optional()
    .meta({ description: 'Where the page begins: taken from `Link`. Without it, the oldest.' }),
  limit: integerParameter(1, 1000, 100).meta(limit),
});
export type UserChangesQuery = z.output<typeof UserChangesQuery>;

/** A cursor has to be of the user in the path. */
export function cursorOfUser(
  { user_id }: { readonly user_id?: string | undefined },
  { cursor }: { readonly cursor?: string | undefined },
): readonly ValueFault[] {
  const place = cursor === undefined ? undefined : placeIn(cursor);
  if (!place || place.userId === user_id?.toLowerCase()) return [];
  return [{ parameter: 'cursor', detail: OTHER_CURSOR }];
}

/** The place of a cursor, if it is one of the changes of this user, or of those of all. */
export function placeFor(cursor: string, userId: string | undefined): Place | undefined {
  const place = placeIn(cursor);
  return place?.userId === userId ? place : undefined;
}
