import type * as z from 'zod';
import { Problem, type ValueFault } from './problem.ts';

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/**
 * The text of a fault for which the schema has no text of its own. Each text begins with "must be", "must have" or "must not".
 * Texts about sizes and forms belong to the schema, as in `boundedText`.
 */
export function detailOf(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'must be present';
  if (issue.code === 'invalid_value') return `must be one of: ${issue.values.join(', ')}`;
  const type = issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined;
  return `must be ${type ?? 'an allowed value'}`;
}

/** The refusal of values that the schemas of a route do not accept, all together. */
export function valuesNotAllowed(errors: readonly ValueFault[]): Problem {
  return new Problem('validation_error', { detail: 'Some values are not valid. See errors.', errors });
}

/** A JSON pointer in a URI fragment (RFC 6901 section 6) to a member of the body. */
export function pointerTo(path: readonly PropertyKey[]): string {
  const escaped = path.map((name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1'));
  return ['#', ...escaped.map(encodeURIComponent)].join('/');
}
