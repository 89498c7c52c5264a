import * as z from 'zod';
import { integerParameter, textParameter, UUID_PATTERN } from '../text.ts';
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
const DATE_TIME = 'must be an RFC 3339 date-time with an offset, in the years 1 to 9999 in UTC';
const CURSOR = 'must be a cursor from a Link header, sent with the filters and the sort of that link';

/** RFC 3339 section 5.6, with `T` and `Z` in either case, at most 9 digits of a fraction, and no leap second. */
const DATE_TIME_PATTERN =
  /^([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))[Tt]((?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2})(?:\.([0-9]{1,9}))?([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$/;

const YEAR = '(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])';
const YEAR_1_MS = Date.parse('0001-01-01T00:00:00.000Z');
const YEAR_10000_MS = Date.parse('+010000-01-01T00:00:00.000Z');

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

/**
 * Parses an RFC 3339 date-time to milliseconds since 1970, rounded down and rounded up. Undefined for any other text, and
 * for a time that is not in the years 1 to 9999 in UTC.
 */
export function timestampRange(text: string) {
  const [, date = '', time, fraction = '', offset = ''] = DATE_TIME_PATTERN.exec(text) ?? [];
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0');
  const floor = Date.parse(`${date}T${time}.${milliseconds}${offset.toUpperCase()}`);
  // Date.parse reads 30 February as 2 March.
  const isDay = date !== '' && new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
  if (!isDay || floor < YEAR_1_MS || floor >= YEAR_10000_MS) return undefined;
  return { floor, ceiling: /[1-9]/.test(fraction.slice(3)) ? floor + 1 : floor };
}

/** A filter by a field. It refuses what create would refuse. */
function filterBy(name: UniqueName, rule: Parameters<typeof textParameter>[1], description: string) {
  const { schema } = FIELDS[name];
  const { minLength, maxLength, pattern, example } = schema.meta() ?? {};
  const isAllowed = (text: string) => schema.safeParse(text).success;
  return textParameter(isAllowed, rule, { description, minLength, maxLength, pattern, examples: [example] });
}

function dateTime(description: string, example: string) {
  const isAllowed = (text: string) => timestampRange(text) !== undefined;
  return textParameter(isAllowed, withHint(DATE_TIME), {
    format: 'date-time',
    minLength: '0001-01-01T00:00:00Z'.length,
    maxLength: '0001-01-01T00:00:00.123456789+00:00'.length,
    // Of the year 0000 only the last day may be in the year 1 in UTC.
    pattern: DATE_TIME_PATTERN.source.replace('[0-9]{4}', YEAR).replace('(', '(0000-12-31|'),
    description,
    examples: [example],
  });
}

/** A space is usually a mistake: in a query, `+` means a space. */
function withHint(rule: string) {
  return ({ input }: { readonly input: unknown }) =>
    String(input).includes(' ') ? `${rule}; write + as %2B` : rule;
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
