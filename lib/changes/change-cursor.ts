/** A place in the feed: after the change at `position`. */
export type Place = {
  readonly position: number;
  /** Identity of that change; undefined if it is not known, as in cursors of earlier versions. */
  readonly identity?: string | undefined;
  /** In the feed of one user: its id, in lower case. */
  readonly userId?: string | undefined;
};

/**
 * Identity, a UUID without hyphens or nothing, position. If either end is cut off, the rest is not a cursor, not even
 * one of earlier versions.
 */
const PLACE = /^([\da-f]{8})\.([\da-f]{32}|)\.(0|[1-9]\d{0,15})\.$/;

/** The form of earlier versions, without an identity. */
const EARLIER_PLACE = /^([\da-f]{32}|)\.(0|[1-9]\d{0,15})$/;

/** The cursor of a place. It is opaque to callers, grants nothing and is not stored. */
export function changeCursor({ position, identity, userId = '' }: Place): string {
  const user = userId.replaceAll('-', '');
  const text = identity === undefined ? `${user}.${position}` : `${identity}.${user}.${position}.`;
  return Buffer.from(text).toString('base64url');
}

/** The place of a cursor; undefined for any other text, and without one. */
export function placeIn(cursor = ''): Place | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, identity, user, digits] = PLACE.exec(text) ?? [];
  const [, earlierUser, earlierDigits] = EARLIER_PLACE.exec(text) ?? [];
  const position = Number(digits ?? earlierDigits);
  // Several texts decode to the same bytes. Only one of them is the cursor.
  if (!Number.isSafeInteger(position) || Buffer.from(text).toString('base64url') !== cursor) return undefined;
  const userId = (user ?? earlierUser)?.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return { position, identity, userId: userId || undefined };
}
