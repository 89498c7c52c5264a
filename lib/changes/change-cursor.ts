/** A place in the feed: after the change at `position`. */
export type Place = {
  readonly position: number;
  /** Identity of that change; undefined if it is not known, as in cursors of earlier versions. */
  readonly identity?: string | undefined;
  /** In the feed of one user: its id, in lower case. */
  readonly userId?: string | undefined;
};

/** Identity, a UUID without hyphens or nothing, position. The form of earlier versions has no identity and no last dot. */
const PLACE = /^(?:([\da-f]{8})\.)?([\da-f]{32}|)\.(0|[1-9]\d{0,15})\.?$/;

/** The cursor of a place. It is opaque to callers, grants nothing and is not stored. */
export function changeCursor({ position, identity, userId = '' }: Place): string {
  const user = userId.replaceAll('-', '');
  const text = identity === undefined ? `${user}.${position}` : `${identity}.${user}.${position}.`;
  return Buffer.from(text).toString('base64url');
}

/** The place of a cursor; undefined for any other text, and without one. */
export function parseChangeCursor(cursor = ''): Place | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, identity, user = '', digits] = PLACE.exec(text) ?? [];
  const position = Number(digits);
  if (!Number.isSafeInteger(position)) return undefined;
  const userId = user.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') || undefined;
  const place = { position, identity, userId };
  // Several texts decode to the same bytes, and a cursor that was cut off may still match the pattern. Only the text that
  // `changeCursor` writes is a cursor.
  return changeCursor(place) === cursor ? place : undefined;
}
