import { Problem } from './problem.ts';

/** The entity tags that a field value lists, in their quotes; `*` stands for any representation. */
export type EntityTags = '*' | readonly string[];

/** What a request asks of the representation it is about; a field that was not sent asks for nothing. */
export type Preconditions = {
  /** Strong tags alone: a weak one never matches here (RFC 9110 section 13.1.1). */
  readonly ifMatch?: EntityTags | undefined;
  /** Weak tags without their `W/`, since they match as if they were strong (RFC 9110 section 13.1.2). */
  readonly ifNoneMatch?: EntityTags | undefined;
};

/** Of a request that asks for none. */
export const NO_PRECONDITIONS: Preconditions = {};

/** What stands between two commas; a comma within quotes belongs to its tag (RFC 9110 section 5.6.1). */
const MEMBER = /(?:[^",]|"[^"]*(?:"|$))+/g;
/** RFC 9110 section 8.8.3. */
const ENTITY_TAG = /^(W\/)?("[\x21\x23-\x7e\x80-\xff]*")$/;

/** The preconditions in a request's header fields (RFC 9110 section 13.1); dates are not looked at. */
export function preconditionsIn(headers: Readonly<Record<string, string | undefined>>): Preconditions {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return NO_PRECONDITIONS;
  return {
    ifMatch: entityTagsIn(ifMatch, { weak: false }),
    ifNoneMatch: entityTagsIn(ifNoneMatch, { weak: true }),
  };
}

/**
 * Whether a reading is to be answered without content, for its caller has the representation of this strong tag.
 *
 * @throws {Problem} precondition_failed_error when `If-Match` does not hold, which goes first (RFC 9110 section 13.2.2)
 */
export function isUnmodified({ ifMatch, ifNoneMatch }: Preconditions, tag: string): boolean {
  if (ifMatch !== undefined && !matches(ifMatch, tag)) throw preconditionFailed();
  return ifNoneMatch !== undefined && matches(ifNoneMatch, tag);
}

/** The representation is not, or no longer, one that the caller's preconditions hold for. */
export function preconditionFailed(): Problem {
  return new Problem('precondition_failed_error', {
    detail: 'The current version of the user does not satisfy If-Match or If-None-Match.',
  });
}

/** RFC 6585 section 3. */
export function preconditionRequired(): Problem {
  return new Problem('precondition_required_error', {
    detail: 'This request requires an If-Match header.',
  });
}

function matches(tags: EntityTags, tag: string): boolean {
  return tags === '*' || tags.includes(tag);
}

/** What is no tag matches nothing, so that a field without any is a list that matches nothing. */
function entityTagsIn(field: string | undefined, { weak }: { weak: boolean }): EntityTags | undefined {
  if (field === undefined) return undefined;
  if (field.trim() === '*') return '*';
  const tags = [...field.matchAll(MEMBER)].map(([member]) => ENTITY_TAG.exec(member.trim()));
  return tags.flatMap((tag) => (tag?.[2] && (weak || !tag[1]) ? [tag[2]] : []));
}
