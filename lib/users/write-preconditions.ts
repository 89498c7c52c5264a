import { type RawBuilder, sql } from 'kysely';
import type { EntityTags, Preconditions } from '../http/preconditions.ts';

/** The versions that a statement may write: those in `among` and not in `except`. Null means no restriction. */
export type Versions = {
  readonly among: readonly string[] | null;
  readonly except: readonly string[] | null;
};

/** The entity tag of a user is its version, a bigint of PostgreSQL. Any other tag belongs to no version. */
const VERSION_TAG = /^"([1-9]\d{0,17})"$/;

/** The preconditions of a write as versions. `If-None-Match: *` allows no version. */
export function versionsFor({ ifMatch = '*', ifNoneMatch = [] }: Preconditions): Versions {
  return {
    among: ifNoneMatch === '*' ? [] : ifMatch === '*' ? null : versionsIn(ifMatch),
    except: ifNoneMatch.length === 0 ? null : versionsIn(ifNoneMatch),
  };
}

/** The condition that a row has such a version. */
export function isOfVersions({ among, except }: Record<keyof Versions, unknown>): RawBuilder<boolean> {
  return sql`(${among}::bigint[] is null or version = any(${among}::bigint[]))
    and (${except}::bigint[] is null or version <> all(${except}::bigint[]))`;
}

function versionsIn(tags: EntityTags): readonly string[] {
  return tags === '*' ? [] : tags.flatMap((tag) => VERSION_TAG.exec(tag)?.[1] ?? []);
}
