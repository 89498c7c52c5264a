import { MAX_HEAD_LENGTH } from '../text.ts';

/**
 * `Link` to the next page (RFC 8288): the value's `next`, which is a path with its query. A parameter is at most as long as
 * the head of the request, and each of its characters may be escaped by three.
 */
export function linkToNext(description: string, example: string) {
  const linked = (target: string) => `<${target}>; rel="next"`;
  return {
    description: `Link to the next page (RFC 8288). ${description}`,
    values: { pattern: '^</[^<>]+>; rel=\\x22next\\x22$', maxLength: 4 * MAX_HEAD_LENGTH },
    example: linked(example),
    of: ({ next }: { readonly next: string | undefined }, basePath: string) =>
      next === undefined ? undefined : linked(`${basePath}${next}`),
  };
}

/** The query of a link, with these values. Undefined ones are left out. */
export function queryWith(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return String(query);
}
