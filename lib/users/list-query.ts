import * as z from 'zod';
import { integerParameter } from '../text.ts';
import { isCursor, positionIn } from './list-cursor.ts';
import { momentOf } from './moment.ts';
import { Email } from './user.ts';

/** The largest `skip`. */
export const LARGEST_SKIP = 2_147_483_647;

const MOST_IDS = 100;
const ID = '[\\da-fA-F]{8}(?:-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12}';
const IDS = new RegExp(`^${ID}(?:,${ID}){0,${MOST_IDS - 1}}$`);

const ADDRESS =
  'must have 1 to 255 characters, one @ with something on both sides, and no white space or control characters';
const DATE_TIME = 'must be an RFC 3339 date-time with an offset, in the years 1 to 9999 in UTC';
const CURSOR = 'must be that of a link, with its filters and its sort';

/** Of the example of a user, in a list without filters. */
const EXAMPLE_CURSOR = 'AAABm3ypjy4BmfPIW3p8Pp1fK4ocTm9w9rPSkknW3TGauxr4C_f_HgHS';

const Parameters = z.object({
  email: z
    .string()
    .refine((text) => Email.safeParse(text).success, { error: withHint(ADDRESS) })
    .optional()
    .meta({
      description: 'Users with this email, without regard to case: one at most. Write `+` as `%2B`.',
      minLength: 1,
      maxLength: 255,
      examples: ['ada@example.com'],
    }),
  is_active: z
    .string()
    .refine((text) => text === 'true' || text === 'false', 'must be true or false')
    .optional()
    .meta({
      description: 'Users that are active, or those that are not.',
      override: { type: 'boolean', examples: [true] },
    }),
  ids: z
    .string()
    .refine((text) => IDS.test(text), `must be 1 to ${MOST_IDS} UUIDs joined by commas`)
    .optional()
    .meta({
      description: 'Users with one of these ids, joined by commas. Unknown ones are left out.',
      override: {
        type: 'array',
        // Swagger UI has no field for a list of format uuid.
        items: { type: 'string', pattern: `^${ID}$` },
        minItems: 1,
        maxItems: MOST_IDS,
        examples: [['0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70', '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f71']],
      },
      param: { style: 'form', explode: false },
    }),
  created_after: dateTime('Users created after this moment, not at it.', '2026-01-02T03:04:05.678Z'),
  created_before: dateTime('Users created before this moment, not at it.', '2026-02-01T00:00:00Z'),
  sort: z
    .enum(['created_at', '-created_at'], { error: 'must be created_at or -created_at' })
    .default('created_at')
    .meta({
      description: 'Oldest first, or newest first; ties by `id` in the same direction.',
      examples: ['-created_at'],
    }),
  cursor: z
    .string()
    .refine(isCursor, CURSOR)
    .optional()
    .meta({
      description:
        'Where the page begins: taken from `Link`, with the filters and the `sort` that stand there. It never expires.',
      examples: [EXAMPLE_CURSOR],
    }),
  skip: integerParameter(0, LARGEST_SKIP, 0).meta({
    description: 'Number of users to skip. Above 0 it is not allowed with `cursor`.',
    examples: [200],
  }),
  limit: integerParameter(1, 1000, 100).meta({
    description: 'How many users to return at most.',
    examples: [50],
  }),
});
type Values = z.output<typeof Parameters>;

/**
 * The query of the list. Filters stay the texts that they were sent as: a cursor is compared with these. It is compared
 * when other parameters are refused, too, so that all faults are told at once.
 */
export const UserListQuery = Parameters.superRefine(demandCursorOfSelection, { when: () => true });
export type UserListQuery = Values;

function dateTime(description: string, example: string) {
  return z
    .string()
    .refine((text) => momentOf(text) !== undefined, { error: withHint(DATE_TIME) })
    .optional()
    .meta({ description, format: 'date-time', examples: [example] });
}

/** A space is most often a `+`, which stands for a space in a query. */
function withHint(rule: string) {
  return ({ input }: { readonly input: unknown }) =>
    String(input).includes(' ') ? `${rule}; + is written as %2B` : rule;
}

function demandCursorOfSelection(query: Values, context: z.RefinementCtx<Values>): void {
  const { cursor, skip } = query;
  if (cursor === undefined) return;
  const refuse = (name: string, message: string) => {
    const isRefused = context.issues.some(({ path }) => path?.[0] === name);
    if (!isRefused) context.addIssue({ code: 'custom', path: [name], message });
  };
  if (skip > 0) refuse('skip', 'must not stand beside a cursor');
  if (!positionIn(cursor, query)) refuse('cursor', CURSOR);
}
