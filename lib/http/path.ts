import type { GatewayEvent } from './gateway.ts';
import { undecodablePath } from './refusals.ts';

/**
 * Characters other than those of a path in RFC 3986 section 3.3. `%` stays, because it belongs to an escape or looks
 * like one.
 */
const OTHER_CHARACTERS = /[^\w\-.~!$&'()*+,;=:@/%]/;

/** The path with escapes for all characters that a path cannot contain, whether it was sent or decoded in this form. */
export function encodePath(path: string): string {
  if (!OTHER_CHARACTERS.test(path)) return path;
  // `encodeURI` also escapes `%`, and leaves the two characters that end a path.
  return encodeURI(path.toWellFormed()).replaceAll('%25', '%').replaceAll('?', '%3F').replaceAll('#', '%23');
}

/**
 * The segments of a path, decoded. A trailing slash makes no difference.
 *
 * @throws {Problem} bad_request_error if the path cannot be decoded
 */
export function splitPath(path: string): readonly string[] {
  try {
    return removeTrailingSlash(path).split('/').map(decodeURIComponent);
  } catch {
    throw undecodablePath();
  }
}

/** Whether these are the segments of a declared path, in which a parameter is in braces. */
export function isPathMatch(declared: readonly string[], segments: readonly string[]): boolean {
  if (declared.length !== segments.length) return false;
  return declared.every((part, index) =>
    part.startsWith('{') ? segments[index] !== '' : part === segments[index],
  );
}

/**
 * Finds the parameters of a declared path if no router has done so: in a function. They are counted from its end, because
 * a gateway may have put segments before it.
 *
 * @throws {Problem} bad_request_error if the path cannot be decoded
 */
export function findPathParameters(declared: string, event: GatewayEvent): void {
  if (event.pathParameters) return;
  const parts = removeTrailingSlash(declared).split('/').reverse();
  const segments = splitPath(event.rawPath).toReversed();
  const parameters = parts.flatMap((part, index) =>
    part.startsWith('{') ? [[part.slice(1, -1), segments[index]]] : [],
  );
  Object.assign(event, { pathParameters: Object.fromEntries(parameters) });
}

/** The path without its trailing slash. Both are one resource. */
export function removeTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
