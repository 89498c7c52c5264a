import * as z from 'zod';
import type { SqlType } from '../postgres/index.ts';
import { boundedText, Timestamp, Uuid } from '../text.ts';
import { Email } from './email.ts';

/** Unicode category Cc. The escapes have the same meaning in other engines. */
const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f';
const PLAIN = new RegExp(`^[^${CONTROL}]*$`);

/**
 * The fields of a user, in the order of responses: the one place of a field (README.md). Log lines and spans have
 * no value but the id, and the masked email of `user_created`. Metrics have none. CONTRIBUTING.md: "Add a field".
 */
export const FIELDS = {
  id: {
    sqlType: 'uuid',
    schema: Uuid.meta({ example: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' }),
    onCreate: 'generated',
  },
  email: {
    sqlType: 'text',
    schema: Email,
    uniqueAs: 'email',
    onCreate: 'required',
    nullOnUpdate: 'leaves',
    changeNumber: 0,
    inKey: 'always',
  },
  full_name: {
    sqlType: 'text',
    schema: boundedText(0, 255).meta({ example: 'Grace Hopper' }),
    onCreate: 'optional',
    nullOnUpdate: 'clears',
    inResponses: 'always',
    changeNumber: 1,
    inKey: 'always',
  },
  is_active: {
    sqlType: 'boolean',
    schema: z.boolean(),
    examples: { update: false, response: true },
    onCreate: 'column_default',
    nullOnUpdate: 'leaves',
    changeNumber: 2,
  },
  created_at: {
    sqlType: 'timestamptz',
    schema: Timestamp.meta({ example: '2026-01-02T03:04:05.678Z' }),
    onCreate: 'generated',
  },
  updated_at: {
    sqlType: 'timestamptz',
    schema: Timestamp.meta({ example: '2026-01-02T03:04:05.678Z' }),
    onCreate: 'generated',
  },
  external_id: {
    sqlType: 'text',
    schema: boundedText(1, 255)
      .refine((text) => PLAIN.test(text), 'must have no control characters')
      .meta({
        pattern: PLAIN.source,
        description:
          "The callers' own identifier of the user, without control characters. Unique, compared exactly. Stored and returned as given.",
        example: 'hr-4711',
      }),
    uniqueAs: 'external id',
    onCreate: 'optional',
    nullOnUpdate: 'clears',
    inResponses: 'when_set',
    changeNumber: 3,
    inKey: 'when_set',
  },
} as const satisfies FieldTable;

/** What the table says about a field. The type of the column decides how its value is read and written as JSON. */
export type Field = {
  readonly sqlType: FieldType;
  /** The values that callers may set or, for a generated field, those in responses. */
  readonly schema: z.ZodType;
  /** Name of the field in refusals, if each value belongs to one user at a time. `taken-values.ts` has its index and SQL. */
  readonly uniqueAs?: string;
} & (GeneratedField | RequiredField | DefaultField | OptionalField);

/** A smallint has no place in responses. */
type FieldType = Exclude<SqlType, 'smallint'>;

/** The service sets the field, and callers never do. */
type GeneratedField = { readonly onCreate: 'generated' };

/** A field that callers can update. Its name is in `changed` if an update gives it another value. */
type UpdatedField = {
  /** Its permanent number: stored changes have this bit. Never change it, and never use it again. */
  readonly changeNumber: ChangeNumber;
  /** If the example in an update differs from the one in a response. Otherwise the schema has it. */
  readonly examples?: { readonly update: unknown; readonly response: unknown };
};

/** Every create sets the field. */
type RequiredField = UpdatedField & {
  readonly onCreate: 'required';
  readonly nullOnUpdate: 'leaves';
  readonly inKey: InKey;
};

/** A create cannot set the field: its column has a default. */
type DefaultField = UpdatedField & { readonly onCreate: 'column_default'; readonly nullOnUpdate: 'leaves' };

/** A create may set the field. Otherwise it is null. */
type OptionalField = UpdatedField & {
  readonly onCreate: 'optional';
  readonly nullOnUpdate: 'clears';
  /** `when_set`: a response leaves the member out if it is null. */
  readonly inResponses: 'always' | 'when_set';
  readonly inKey: InKey;
};

/**
 * Whether the value is always among those under an idempotency key, or only if it is set. For a new field it is
 * `when_set`: otherwise the digests of all keys in use change, and their requests are 422.
 */
type InKey = 'always' | 'when_set';

/** The numbers of the bits of a smallint that is not negative. */
type ChangeNumber = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14;

/** Names that other columns and parameters of the statements have. */
type ReservedName =
  | ('actor' | 'among' | 'changed' | 'created' | 'except' | 'folded' | 'key' | 'lock_timeout' | 'moment')
  | ('position' | 'request' | 'request_id' | 'sets' | 'user_ids' | 'version');

type FieldTable = Readonly<Record<string, Field>> & { readonly [Name in ReservedName]?: never };

export type FieldName = keyof typeof FIELDS;

export type NameOf<Entry> = {
  [Name in FieldName]: (typeof FIELDS)[Name] extends Entry ? Name : never;
}[FieldName];

export type CreatedName = NameOf<{ onCreate: 'required' | 'optional' }>;
export type UpdatedName = NameOf<{ changeNumber: ChangeNumber }>;
export type UniqueName = NameOf<{ uniqueAs: string }>;
export type NullableName = NameOf<{ onCreate: 'optional' }>;

export const fields = Object.entries<Field>(FIELDS).map(([name, field]) => ({
  ...field,
  name: name as FieldName,
}));

export const createdFields = fields
  .filter((field) => field.onCreate === 'required' || field.onCreate === 'optional')
  .map((field) => ({ ...field, name: field.name as CreatedName }));

export const updatedFields = fields
  .filter((field) => field.onCreate !== 'generated')
  .map((field) => ({ ...field, name: field.name as UpdatedName, changeBit: 1 << field.changeNumber }));

/** The names of the fields whose values belong to one user at a time, in the order of `errors`. */
export const uniqueNames = fields.filter(({ uniqueAs }) => uniqueAs).map(({ name }) => name as UniqueName);

export function sqlTypesOf<Name extends FieldName>(
  some: readonly { readonly name: Name; readonly sqlType: FieldType }[],
): Record<Name, FieldType> {
  return Object.fromEntries(some.map(({ name, sqlType }) => [name, sqlType])) as Record<Name, FieldType>;
}

export function isOmittedIfNull(field: Field): boolean {
  return field.onCreate === 'optional' && field.inResponses === 'when_set';
}
