/** A place in the feed: behind the change at `position`. */
export type Place = {
  readonly position: number;
  /** Identity of that change; undefined if it is not known, as in cursors of earlier versions. */
  readonly identity?: string | undefined;
};

/** The place of a cursor: in the feed of all users, or in that of one, whose id is in lower case. */
export type CursorPlace = Place & { readonly userId?: string | undefined };

/** Identity; a UUID without hyphens, or nothing; position. Cut at either end it is no cursor, neither of earlier versions. */
const PLACE = /^([\da-f]{8})\.([\da-f]{32}|)\.(0|[1-9]\d{0,15})\.$/;

/** The same as earlier versions wrote it, without an identity. */
const EARLIER_PLACE = /^([\da-f]{32}|)\.(0|[1-9]\d{0,15})$/;

/** The cursor of a place. It is opaque to callers, grants nothing and is kept nowhere. */
export function changeCursor({ position, identity, userId = '' }: CursorPlace): string {
  const user = userId.replaceAll('-', '');
  const text = identity === undefined ? `${user}.${position}` : `${identity}.${user}.${position}.`;
  return Buffer.from(text).toString('base64url');
}

/** The place of a cursor; undefined for any other text. */
export function placeIn(cursor: string): CursorPlace | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, identity, user, digits] = PLACE.exec(text) ?? [];
  const [, earlierUser, earlierDigits] = EARLIER_PLACE.exec(text) ?? [];
  const position = Number(digits ?? earlierDigits);
  // Many texts decode alike. One of them is the cursor.
  if (!Number.isSafeInteger(position) || Buffer.from(text).toString('base64url') !== cursor) return undefined;
  const userId = (user ?? earlierUser)?.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return { position, identity, userId: userId || undefined };
}
