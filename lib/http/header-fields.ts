/**
 * An object that inherits from this one has no members of Object's. V8 does not treat it as a dictionary, as it would
 * without a prototype.
 */
const NO_MEMBERS = Object.create(null);

/**
 * Headers by their names in lower case, from a list of names and values in turn. Repeated headers are one value (RFC
 * 9110 section 5.3). They are joined so that no token and no request ID looks like a single one. Node would keep only the
 * first.
 */
export function joinHeaders(pairs: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(NO_MEMBERS);
  for (let index = 0; index < pairs.length; index += 2) {
    const name = (pairs[index] as string).toLowerCase();
    const value = pairs[index + 1] as string;
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}
