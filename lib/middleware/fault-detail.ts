import type * as z from 'zod';

/** What a value has to be, by zod's name for its type. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/**
 * What a caller is told about a fault for which the schema has no words of its own. Every detail begins with "must be"
 * or "must have". Sizes and forms are better told by the schema, as `boundedText` does.
 */
export function detailOf(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'must be given';
  if (issue.code === 'invalid_value') return `must be one of: ${issue.values.join(', ')}`;
  const type = issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined;
  return `must be ${type ?? 'an allowed value'}`;
}
