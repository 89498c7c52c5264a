import * as z from 'zod';
import { boundedText, NO_NUL_PATTERN, Timestamp, UUID_PATTERN, Uuid } from '../text.ts';

const EMAIL_LENGTH = 255;
const FULL_NAME_LENGTH = 255;

/** Maximum number of users in a page of the list. */
export const MAX_PAGE_SIZE = 1000;

/** Either side of the @. White space is as in ECMAScript. The escapes have the same meaning in other engines. */
const PART = '[^@\\s\\u0000-\\u001f\\u007f-\\u009f\\ufeff]+';
const ADDRESS = new RegExp(`^${PART}@${PART}$`);

/** The form of an address, for the documentation. */
export const EMAIL_FORM = { minLength: 1, maxLength: EMAIL_LENGTH, pattern: ADDRESS.source };

/** An address that a user may have. */
export const Email = boundedText(1, EMAIL_LENGTH)
  .refine(
    isAddress,
    'must have exactly one @ with at least one character on each side, and no white space or control characters',
  )
  .meta({
    ...EMAIL_FORM,
    description:
      'Exactly one @ with at least one character on each side, and no white space or control characters. Unique ' +
      'without regard to case. Stored and returned as given.',
    example: 'ada@example.com',
  });

const FullName = boundedText(0, FULL_NAME_LENGTH).meta({ example: 'Ada Lovelace' });

/** The body of create. */
export const UserCreate = z
  .object({ email: Email, full_name: FullName.nullable().default(null) })
  .meta({ id: 'UserCreate' });
export type UserCreate = z.output<typeof UserCreate>;

/** The body of update. An absent member and null leave their field unchanged, except that null clears `full_name`. */
export const UserUpdate = z
  .object({
    email: Email.nullable().optional(),
    full_name: FullName.nullable().optional(),
    is_active: z.boolean().nullable().optional().meta({ example: false }),
  })
  .meta({
    id: 'UserUpdate',
    description:
      'An absent member leaves its field unchanged. Null clears `full_name` and leaves the other fields unchanged.',
  });
export type UserUpdate = z.output<typeof UserUpdate>;

/** The fields that an update sets. Null clears `full_name`, and leaves the others unchanged: they cannot be null. */
export function fieldsToSet({ email = null, full_name, is_active = null }: UserUpdate) {
  return { email, is_active, full_name: full_name ?? null, sets_full_name: full_name !== undefined };
}

/** A user, as in responses. */
export const UserRead = z
  .object({
    id: Uuid.meta({ example: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' }),
    email: z.string().meta({ ...EMAIL_FORM, example: 'ada@example.com' }),
    full_name: z
      .string()
      .max(FULL_NAME_LENGTH)
      .meta({ pattern: NO_NUL_PATTERN })
      .nullable()
      .meta({ example: 'Ada Lovelace' }),
    is_active: z.boolean().meta({ example: true }),
    created_at: Timestamp.meta({ example: '2026-01-02T03:04:05.678Z' }),
    updated_at: Timestamp.meta({ example: '2026-01-02T03:04:05.678Z' }),
  })
  .meta({ id: 'UserRead' });

/** The path of one user. */
export const UserPath = z.object({
  user_id: z
    .string()
    .regex(new RegExp(`^${UUID_PATTERN}$`), 'must be a UUID')
    .meta({ ...Uuid.meta(), description: "The user's id.", example: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' }),
});

/** The sibling routes of the path of one user, with their methods. */
export const NEIGHBOURS_OF_USER = {
  batch: { methods: ['POST'] },
  changes: { methods: ['GET'] },
} as const;

/** A user, as stored: times in milliseconds since 1970, and `version`, which counts the writes of the user. */
export type User = {
  readonly id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly is_active: boolean;
  /** Milliseconds since 1970. */
  readonly created_at: number;
  readonly updated_at: number;
  readonly version: string;
};

function isAddress(text: string): boolean {
  return ADDRESS.test(text);
}
