import { undecodablePath } from './http-refusals.ts';

/** What RFC 3986 section 3.3 lets stand in a path; `%` is that of an escape, or of what only looks like one. */
const OTHER_CHARACTERS = /[^\w\-.~!$&'()*+,;=:@/%]/gu;
const OTHER_CHARACTER = /[^\w\-.~!$&'()*+,;=:@/%]/;

/** The path with all that cannot stand in one in escapes, whoever sent it so or decoded it on the way. */
export function encodedPath(path: string): string {
  if (!OTHER_CHARACTER.test(path)) return path;
  return path.replace(OTHER_CHARACTERS, (character) => encodeURIComponent(character.toWellFormed()));
}

/**
 * The segments of a path, decoded; with a slash at its end or without it has the same.
 *
 * @throws {Problem} bad_request_error when it cannot be decoded
 */
export function segmentsOf(path: string): readonly string[] {
  try {
    return withoutSlash(path).split('/').map(decodeURIComponent);
  } catch {
    throw undecodablePath();
  }
}

/** Whether these are the segments of a path as declared, in which a parameter stands in braces. */
export function isMatch(declared: readonly string[], segments: readonly string[]): boolean {
  if (declared.length !== segments.length) return false;
  return declared.every((part, index) =>
    part.startsWith('{') ? segments[index] !== '' : part === segments[index],
  );
}

/**
 * The parameters of a path as declared. They are counted from its end: a gateway may have put something before it.
 *
 * @throws {Problem} bad_request_error when it cannot be decoded
 */
export function pathParametersIn(
  declared: string,
  path: string,
): Readonly<Record<string, string | undefined>> {
  const parts = withoutSlash(declared).split('/').reverse();
  const segments = segmentsOf(path).toReversed();
  return Object.fromEntries(
    parts.flatMap((part, index) => (part.startsWith('{') ? [[part.slice(1, -1), segments[index]]] : [])),
  );
}

/** A path and the same with a slash at its end are one resource. */
export function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
