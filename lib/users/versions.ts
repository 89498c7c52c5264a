import type { EntityTags, Preconditions } from '../preconditions.ts';

/** The versions that a statement may write: one of `among` and none of `except`; null asks for nothing. */
export type Versions = {
  readonly among: readonly string[] | null;
  readonly except: readonly string[] | null;
};

/** An entity tag of a user is its version, a bigint of PostgreSQL; any other tag is of no version. */
const VERSION_TAG = /^"([1-9]\d{0,17})"$/;

/** The preconditions of a write, as the versions that they leave. Whoever refuses them all (`*`) leaves none. */
export function versionsFor({ ifMatch = '*', ifNoneMatch = [] }: Preconditions): Versions {
  return {
    among: ifNoneMatch === '*' ? [] : ifMatch === '*' ? null : versionsIn(ifMatch),
    except: ifNoneMatch.length === 0 ? null : versionsIn(ifNoneMatch),
  };
}

function versionsIn(tags: EntityTags): readonly string[] {
  return tags === '*' ? [] : tags.flatMap((tag) => VERSION_TAG.exec(tag)?.[1] ?? []);
}
