import * as z from 'zod';
import { integerParameter, textParameter, withHint } from '../http/query-parameters.ts';
import { UUID_PATTERN } from '../text.ts';
import { dateTime } from './date-time.ts';
import { FIELDS, type UniqueName } from './fields.ts';
import { CURSOR_FORM, isCursor, parseCursor } from './list-cursor.ts';
import { MAX_PAGE_SIZE } from './user.ts';

/** Maximum `skip`: the largest 32-bit integer. */
export const MAX_SKIP = 2_147_483_647;

/** Maximum `limit` of a short page. A longer one takes so long to write that reads of one user would wait. */
export const MAX_SHORT_PAGE = 100;

/** Whether a request asks for more than a short page. Only its admission depends on this. */
export function hasLongPage({ rawQueryString }: { readonly rawQueryString: string }): boolean {
  return Number(/(?:^|&)limit=([0-9]+)/.exec(rawQueryString)?.[1]) > MAX_SHORT_PAGE;
}

const MAX_IDS = 100;
const IDS = new RegExp(`^${UUID_PATTERN}(?:,${UUID_PATTERN}){0,${MAX_IDS - 1}}$`);

const ADDRESS =
  'must have 1 to 255 characters, exactly one @ with at least one character on each side, and no white space or control characters';
const EXTERNAL_ID = 'must have 1 to 255 characters, and no control characters';
const CURSOR = 'must be a cursor from a Link header, sent with the filters and the sort of that link';

/** The cursor of the example user, in a list without filters. */
const EXAMPLE_CURSOR = 'AAABm3ypjy4BmfPIW3p8Pp1fK4ocTm9w9rPSkknW3TGauxr4C_f_HgHS';

const UserListParameters = z.object({
  email: filterBy(
    'email',
    withHint(ADDRESS),
    'The user with this email, whatever the case of A to Z. Encode `+` as `%2B`.',
  ),
  external_id: filterBy(
    'external_id',
    EXTERNAL_ID,
    'The user with this external id, compared exactly. Encode `+` as `%2B`.',
  ),
  is_active: textParameter((text) => text === 'true' || text === 'false', 'must be true or false', {
    description: 'Users that are active, or those that are not.',
    override: { type: 'boolean', examples: [true] },
  }),
  ids: textParameter((text) => IDS.test(text), `must be 1 to ${MAX_IDS} UUIDs separated by commas`, {
    description: 'Users with one of these ids, separated by commas. Unknown ids are ignored.',
    override: {
      type: 'array',
      // Swagger UI has no field for a list of format uuid.
      items: { type: 'string', minLength: 36, maxLength: 36, pattern: `^${UUID_PATTERN}$` },
      minItems: 1,
      maxItems: MAX_IDS,
      examples: [['0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70', '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f71']],
    },
    param: { style: 'form', explode: false },
  }),
  created_after: dateTime('Users created after this time (exclusive).', '2026-01-02T03:04:05.678Z'),
  created_before: dateTime('Users created before this time (exclusive).', '2026-02-01T00:00:00Z'),
  sort: z
    .enum(['created_at', '-created_at'], { error: 'must be created_at or -created_at' })
    .default('created_at')
    .meta({
      description: 'Oldest first, or newest first; ties by `id` in the same direction.',
      examples: ['-created_at'],
    }),
  cursor: textParameter(isCursor, CURSOR, {
    description:
      'Start of the page: a cursor from a `Link` header, sent with the same filters and `sort`. It never expires.',
    ...CURSOR_FORM,
    examples: [EXAMPLE_CURSOR],
  }),
  skip: integerParameter(0, MAX_SKIP, 0).meta({
    description: 'Number of users to skip. Above 0 it is not allowed with `cursor`.',
    examples: [200],
  }),
  limit: integerParameter(1, MAX_PAGE_SIZE, 100).meta({
    description: 'Maximum number of users to return.',
    examples: [50],
  }),
});
/** The query of the list. A cursor is also compared if other parameters are refused: `errors` lists all faults. */
export const UserListQuery = UserListParameters.superRefine(demandCursorOfSelection, { when: () => true });
export type UserListQuery = z.output<typeof UserListParameters>;

/** A filter by a field. It refuses what create would refuse. */
function filterBy(name: UniqueName, rule: Parameters<typeof textParameter>[1], description: string) {
  const { schema } = FIELDS[name];
  const { minLength, maxLength, pattern, example } = schema.meta() ?? {};
  const isAllowed = (text: string) => schema.safeParse(text).success;
  return textParameter(isAllowed, rule, { description, minLength, maxLength, pattern, examples: [example] });
}

function demandCursorOfSelection(query: UserListQuery, context: z.RefinementCtx<UserListQuery>): void {
  const { cursor, skip } = query;
  if (cursor === undefined) return;
  const addFault = (name: string, message: string) => {
    const isRefused = context.issues.some(({ path }) => path?.[0] === name);
    if (!isRefused) context.addIssue({ code: 'custom', path: [name], message });
  };
  if (skip > 0) addFault('skip', 'must not be combined with a cursor');
  if (!parseCursor(cursor, query)) addFault('cursor', CURSOR);
}
