import * as z from 'zod';
import { UUID_PATTERN, Uuid } from '../text.ts';
import {
  type CreatedName,
  createdFields,
  type FIELDS,
  type Field,
  type FieldName,
  fields,
  isOmittedIfNull,
  type NullableName,
  type UpdatedName,
  updatedFields,
} from './fields.ts';

/** The path of all users. Every other path of the API begins with it. */
export const USERS_PATH = '/api/v1/users';

export const MAX_PAGE_SIZE = 1000;

type Schema<Name extends FieldName> = (typeof FIELDS)[Name]['schema'];
type ShapeOfCreate = {
  [Name in CreatedName]: Name extends NullableName ? z.ZodDefault<z.ZodNullable<Schema<Name>>> : Schema<Name>;
};
type ShapeOfUpdate = { [Name in UpdatedName]: z.ZodOptional<z.ZodNullable<Schema<Name>>> };

/** Leaves the default out of the document: generators would make the member required. */
export function withoutDefault({ jsonSchema }: { readonly jsonSchema: { default?: unknown } }): void {
  delete jsonSchema.default;
}

export const UserCreate = z
  .object(
    shapeOf(createdFields, ({ onCreate, schema }) =>
      onCreate === 'optional' ? schema.nullable().default(null).meta({ override: withoutDefault }) : schema,
    ) as ShapeOfCreate,
  )
  .meta({ id: 'UserCreate' });
export type UserCreate = z.output<typeof UserCreate>;

/** The body of update. An absent member leaves its field unchanged. `nullOnUpdate` of the field says what null does. */
export const UserUpdate = z
  .object(
    shapeOf(updatedFields, ({ schema, examples }) => {
      const member = schema.nullable().optional();
      return examples ? member.meta({ example: examples.update }) : member;
    }) as ShapeOfUpdate,
  )
  .meta({
    id: 'UserUpdate',
    description: `An absent member leaves its field unchanged. Null clears ${namesOfCleared()} and leaves the other fields unchanged.`,
    // A unique value would be that of another example.
    example: shapeOf(
      updatedFields.filter(({ uniqueAs }) => !uniqueAs),
      ({ schema, examples }) => examples?.update ?? schema.meta()?.example,
    ),
  });
export type UserUpdate = z.output<typeof UserUpdate>;

export const UserRead = z.object(shapeOf(fields, memberOfResponse)).meta({ id: 'UserRead' });

/**
 * A user, as PostgreSQL returns it. `version` counts the writes of the user. A time is in milliseconds since 1970.
 * `version` and times are of type bigint, which pg reads as a text.
 */
export type User = {
  readonly [Name in FieldName]:
    | ((typeof FIELDS)[Name]['sqlType'] extends 'boolean' ? boolean : string)
    | (Name extends NullableName ? null : never);
} & { readonly version: string };

/** The path of one user. The id is in lower case, as PostgreSQL returns it. */
export const UserPath = z.object({
  user_id: z
    .string()
    .regex(new RegExp(`^${UUID_PATTERN}$`), 'must be a UUID')
    .toLowerCase()
    .meta({ ...Uuid.meta(), description: "The user's id.", example: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' }),
});

export const SIBLINGS_OF_USER = {
  batch: { methods: ['POST'] },
  changes: { methods: ['GET'] },
} as const;

function shapeOf<Entry extends { readonly name: FieldName }, Member>(
  entries: readonly Entry[],
  member: (entry: Entry) => Member,
): Record<string, Member> {
  return Object.fromEntries(entries.map((entry) => [entry.name, member(entry)]));
}

/** A field in a response. The rules for what callers send are left out, except for the form of a text. */
function memberOfResponse(field: Field): z.ZodType {
  const { sqlType, schema, onCreate } = field;
  if (onCreate === 'generated') return schema;
  const { description: _, example, minLength, ...form } = schema.meta() ?? {};
  const shown =
    sqlType === 'text' ? z.string().meta({ ...(minLength ? { minLength } : {}), ...form }) : schema;
  const isNullable = onCreate === 'optional' && !isOmittedIfNull(field);
  const member = (isNullable ? shown.nullable() : shown).meta({
    example: field.examples?.response ?? example,
  });
  return isOmittedIfNull(field) ? member.optional() : member;
}

/** A list in English. `Intl.ListFormat` loads tables that take 7 MB of memory in each process. */
function namesOfCleared(): string {
  const names = updatedFields.flatMap(({ name, nullOnUpdate }) =>
    nullOnUpdate === 'clears' ? [`\`${name}\``] : [],
  );
  return names.join(', ').replace(/,([^,]*)$/, ' and$1');
}
