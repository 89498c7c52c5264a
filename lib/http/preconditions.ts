import { Problem } from './problem.ts';

/** The entity tags in a field value, with their quotes; `*` means any representation. */
export type EntityTags = '*' | readonly string[];

/** The preconditions of a request. A field that was not sent is undefined. */
export type Preconditions = {
  /** Only strong tags: a weak tag never matches here (RFC 9110 section 13.1.1). */
  readonly ifMatch?: EntityTags | undefined;
  /** Weak tags without their `W/`, because they match like strong ones (RFC 9110 section 13.1.2). */
  readonly ifNoneMatch?: EntityTags | undefined;
};

/** The text between two commas. A comma within quotes belongs to its tag (RFC 9110 section 5.6.1). */
const MEMBER = /(?:[^",]|"[^"]*(?:"|$))+/g;
/** RFC 9110 section 8.8.3. */
const ENTITY_TAG = /^(W\/)?("[\x21\x23-\x7e\x80-\xff]*")$/;

/** The preconditions in a request's header fields (RFC 9110 section 13.1). Dates are ignored. */
export function readPreconditions(headers: Readonly<Record<string, string | undefined>>): Preconditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
  return {
    ifMatch: parseEntityTags(ifMatch, { weak: false }),
    ifNoneMatch: parseEntityTags(ifNoneMatch, { weak: true }),
  };
}

/**
 * Whether a read is answered without content, because its caller has the representation with this strong tag.
 *
 * @throws {Problem} precondition_failed_error if `If-Match` is not satisfied, which is evaluated first (RFC 9110
 * section 13.2.2)
 */
export function isUnmodified({ ifMatch, ifNoneMatch }: Preconditions, tag: string): boolean {
  if (ifMatch !== undefined && !hasTag(ifMatch, tag)) throw preconditionFailed();
  return ifNoneMatch !== undefined && hasTag(ifNoneMatch, tag);
}

/** The refusal of a request whose preconditions the current representation does not satisfy. */
export function preconditionFailed(): Problem {
  return new Problem('precondition_failed_error', {
    detail: 'The current version of the user does not satisfy If-Match or If-None-Match.',
  });
}

/** Refuses a write without `If-Match`. An empty `If-Match` is present, and matches nothing. */
export function demandIfMatch(headers: Readonly<Record<string, string | undefined>>): void {
  if (headers['if-match'] === undefined) throw preconditionRequired();
}

/** RFC 6585 section 3. */
export function preconditionRequired(): Problem {
  return new Problem('precondition_required_error', {
    detail: 'This request requires an If-Match header.',
  });
}

function hasTag(tags: EntityTags, tag: string): boolean {
  return tags === '*' || tags.includes(tag);
}

/** A value that is not a tag matches nothing. A field without a tag is therefore a list that matches nothing. */
function parseEntityTags(field: string | undefined, { weak }: { weak: boolean }): EntityTags | undefined {
  if (field === undefined) return undefined;
  if (field.trim() === '*') return '*';
  const tags = field.match(MEMBER)?.map((member) => ENTITY_TAG.exec(member.trim())) ?? [];
  return tags.flatMap((tag) => (tag?.[2] && (weak || !tag[1]) ? [tag[2]] : []));
}
