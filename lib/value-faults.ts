import type * as z from 'zod';
import { Problem, type ValueFault } from './problem.ts';

/** What a value has to be, by zod's name for its type. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/**
 * What a caller is told about a fault for which the schema has no words of its own. Every detail begins with "must be",
 * "must have" or "must not". Sizes and forms are better told by the schema, as `boundedText` does.
 */
export function detailOf(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'must be present';
  if (issue.code === 'invalid_value') return `must be one of: ${issue.values.join(', ')}`;
  const type = issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined;
  return `must be ${type ?? 'an allowed value'}`;
}

/** Values that the schemas of a route refuse, all at once. */
export function valuesNotAllowed(errors: readonly ValueFault[]): Problem {
  return new Problem('validation_error', { detail: 'Some values are not valid. See errors.', errors });
}

/** A JSON pointer in a URI fragment (RFC 6901 section 6) to a member of the body. */
export function pointerTo(path: readonly PropertyKey[]): string {
  const escaped = path.map((name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1'));
  return ['#', ...escaped.map(encodeURIComponent)].join('/');
}
