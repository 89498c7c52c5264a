/** A place in the feed of all users, or in that of one: what comes after `position` has not been read. */
export type Place = {
  readonly position: number;
  /** Of the feed of one user; in lower case. */
  readonly userId?: string | undefined;
};

/** A UUID without hyphens, or nothing; then the position. */
const PLACE = /^([\da-f]{32}|)\.(0|[1-9]\d{0,15})$/;

/** The cursor of a place. It is opaque to callers, grants nothing and is kept nowhere. */
export function changeCursor({ position, userId = '' }: Place): string {
  return Buffer.from(`${userId.replaceAll('-', '')}.${position}`).toString('base64url');
}

/** The place that a cursor tells; undefined for any other text. */
export function placeIn(cursor: string): Place | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, userId = '', digits] = PLACE.exec(text) ?? [];
  const position = Number(digits);
  // Of the many texts that decode alike, one is the cursor.
  if (!Number.isSafeInteger(position) || Buffer.from(text).toString('base64url') !== cursor) return undefined;
  return { position, ...(userId && { userId: userId.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') }) };
}
