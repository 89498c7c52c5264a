import * as z from 'zod';
import type { RequestSchemas } from '../http/middleware/validate.ts';
import type { ValueFault } from '../http/problem.ts';
import { detailOf } from '../http/value-faults.ts';

/** A fault for each value that these schemas describe, with the text of its first rule. */
export function faultsOf({ headers, params, query, body }: RequestSchemas): readonly ValueFault[] {
  return [
    ...rulesOf(headers).map(([header, detail]) => ({ header, detail })),
    ...[...rulesOf(params), ...rulesOf(query)].map(([parameter, detail]) => ({ parameter, detail })),
    ...rulesOf(body).map(([member, detail]) => ({ pointer: `#/${member}`, detail })),
  ];
}

function rulesOf(schema: z.ZodObject | undefined): readonly (readonly [name: string, rule: string])[] {
  return Object.entries(schema?.shape ?? {}).map(([name, value]) => [name, ruleOf(value as z.ZodType)]);
}

/** The message of the first check of a schema, or of its type if it has no check. */
function ruleOf(schema: z.ZodType): string {
  if (schema instanceof z.ZodPipe) return ruleOf(schema.in as z.ZodType);
  const isWrapped =
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault;
  if (isWrapped) return ruleOf(schema.unwrap() as z.ZodType);
  const { checks = [], error = detailOf, type } = schema._zod.def;
  const messageOf = checks[0]?._zod.def.error ?? error;
  const ofValue =
    schema instanceof z.ZodEnum
      ? { code: 'invalid_value', values: schema.options }
      : { code: 'invalid_type', expected: type };
  const message = messageOf({ ...ofValue, input: null, path: [] } as never);
  return (typeof message === 'string' ? message : message?.message) ?? '';
}
