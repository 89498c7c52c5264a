import { type RawBuilder, sql } from 'kysely';
import type { Preconditions } from '../http/preconditions.ts';

/**
 * The versions that a statement may write: those in `among` and not in `except`. Null means no restriction. Each is one
 * text, an array of PostgreSQL, because an array of arrays requires all of them to have the same length.
 */
export type VersionTexts = { readonly among: string | null; readonly except: string | null };

export const VERSION_TYPES = { among: 'text', except: 'text' } as const;

/** The entity tag of a user is its version, a bigint of PostgreSQL. Any other tag belongs to no version. */
const VERSION_TAG = /^"([1-9]\d{0,17})"$/;

/** The preconditions of a write as versions. `If-None-Match: *` allows no version. */
export function versionTexts({ ifMatch = '*', ifNoneMatch = [] }: Preconditions): VersionTexts {
  if (ifNoneMatch === '*') return { among: formatVersions([]), except: null };
  return {
    among: ifMatch === '*' ? null : formatVersions(ifMatch),
    except: ifNoneMatch.length === 0 ? null : formatVersions(ifNoneMatch),
  };
}

/** The condition that a row of `users` has one of the versions of its row in `given`. */
export const isOfGivenVersions: RawBuilder<boolean> = sql`
  (given.among is null or version::text = any(string_to_array(given.among, ',')))
  and (given.except is null or version::text <> all(string_to_array(given.except, ',')))`;

function formatVersions(tags: readonly string[]): string {
  return tags.flatMap((tag) => VERSION_TAG.exec(tag)?.[1] ?? []).join();
}
