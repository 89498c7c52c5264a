/** The versions of a user that a write may replace; none of them when the tags in `If-Match` name none. */
export type Precondition = readonly string[];

/** RFC 9110 section 8.8.3: entity tags in a list; a weak one never matches in `If-Match`. */
const ENTITY_TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/g;

/** Versions are of PostgreSQL's type bigint; another tag is of no version. */
const VERSION = /^[1-9]\d{0,17}$/;

/** The precondition that `If-Match` states (RFC 9110 section 13.1.1); undefined without one and for `*`. */
export function preconditionOf(ifMatch: string | undefined): Precondition | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tags = [...ifMatch.matchAll(ENTITY_TAG)];
  return tags.filter(([, weak, tag = '']) => !weak && VERSION.test(tag)).map(([, , tag = '']) => tag);
}
