import * as z from 'zod';

/** A value that the schema describes, composed of the examples of its parts; undefined if there are none. */
export function exampleOf(schema: z.ZodType): unknown {
  const own = schema.meta()?.example;
  if (own !== undefined) return own;
  if (schema instanceof z.ZodLiteral) return schema.value;
  if (schema instanceof z.ZodArray) return examplesOfEach(schema.element as z.ZodType);
  if (schema instanceof z.ZodUnion) return exampleOf(schema.options[0] as z.ZodType);
  if (schema instanceof z.ZodObject) return examplesOf(schema.shape);
  const isWrapped =
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault;
  return isWrapped ? exampleOf(schema.unwrap() as z.ZodType) : undefined;
}

/** For a union, one example of each member. */
function examplesOfEach(schema: z.ZodType): readonly unknown[] {
  const isOneOf = schema instanceof z.ZodUnion && schema.meta()?.example === undefined;
  return (isOneOf ? schema.options : [schema]).map((one) => exampleOf(one as z.ZodType));
}

export function examplePath(path: string, params: z.ZodObject | undefined): string {
  const examples = params ? examplesOf(params.shape) : {};
  return path.replace(/\{(\w+)\}/g, (parameter, name: string) => String(examples[name] ?? parameter));
}

function examplesOf(shape: z.ZodObject['shape']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => [name, exampleOf(schema as z.ZodType)]),
  );
}
