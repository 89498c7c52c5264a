import * as z from 'zod';
import { boundedText } from '../text.ts';

const EMAIL_LENGTH = 255;
const FULL_NAME_LENGTH = 255;

/** An address that a user may have. */
export const Email = boundedText(1, EMAIL_LENGTH)
  .refine(isAddress, 'must have one @ with something on both sides, and no white space or control characters')
  .meta({
    description:
      'One @ with something on both sides, no white space and no control characters. Unique without regard to ' +
      'case; stored and returned as given.',
    example: 'ada@example.com',
  });

const FullName = boundedText(0, FULL_NAME_LENGTH).meta({ example: 'Ada Lovelace' });

/** The body of create. */
export const UserCreate = z
  .object({ email: Email, full_name: FullName.nullable().default(null) })
  .meta({ id: 'UserCreate' });
export type UserCreate = z.output<typeof UserCreate>;

/** The body of update: an absent member leaves its field, and so does null, except that it clears `full_name`. */
export const UserUpdate = z
  .object({
    email: Email.nullable().optional(),
    full_name: FullName.nullable().optional(),
    is_active: z.boolean().nullable().optional().meta({ example: false }),
  })
  .meta({
    id: 'UserUpdate',
    description: 'An absent member leaves its field. Null clears `full_name`, and leaves the other fields.',
  });
export type UserUpdate = z.output<typeof UserUpdate>;

/** What an update sets: null clears `full_name`; the other fields cannot be null, so there it leaves them. */
export function fieldsToSet({ email = null, full_name, is_active = null }: UserUpdate) {
  return { email, is_active, full_name: full_name ?? null, sets_full_name: full_name !== undefined };
}

/** A user, as callers read it. */
export const UserRead = z
  .object({
    id: z.guid().meta({ format: 'uuid', example: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' }),
    email: z.string().max(EMAIL_LENGTH).meta({ example: 'ada@example.com' }),
    full_name: z.string().max(FULL_NAME_LENGTH).nullable().meta({ example: 'Ada Lovelace' }),
    is_active: z.boolean().meta({ example: true }),
    created_at: z.iso.datetime({ precision: 3 }).meta({ example: '2026-01-02T03:04:05.678Z' }),
    updated_at: z.iso.datetime({ precision: 3 }).meta({ example: '2026-01-02T03:04:05.678Z' }),
  })
  .meta({ id: 'UserRead' });

/** The path of one user. */
export const UserPath = z.object({
  user_id: z
    .string()
    .regex(/^[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12}$/, 'must be a UUID')
    .meta({ format: 'uuid', description: "The user's id.", example: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' }),
});

/** Paths of their own beside that of one user, with their methods. */
export const NEIGHBOURS_OF_USER = {
  batch: { methods: ['POST'] },
  changes: { methods: ['GET'] },
} as const;

/** A user, as the database gives it: times in milliseconds since 1970, and `version`, which counts its writes. */
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
  return /^[^@\s\p{Cc}]+@[^@\s\p{Cc}]+$/u.test(text);
}
