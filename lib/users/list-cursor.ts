import { hash } from 'node:crypto';

/** The end of a page: the place of its last user in the order of the list. */
export type Position = {
  /** Milliseconds since 1970. */
  readonly created_at: number;
  readonly id: string;
};

const FILTERS = ['email', 'is_active', 'ids', 'created_after', 'created_before'] as const;

/** A filter that a later version added is in the digest only if it is set, so that earlier cursors stay valid. */
const ADDED_FILTERS = ['external_id'] as const;

/** The filters and the order that a cursor belongs to, as they were sent. */
type Selection = { readonly sort: string } & {
  readonly [Name in (typeof FILTERS | typeof ADDED_FILTERS)[number]]?: string | undefined;
};

const POSITION_BYTES = 24;
const DIGEST_BYTES = 18;

/** 42 bytes fill 56 characters completely, so each cursor has exactly one text. */
const CURSOR = /^[A-Za-z0-9_-]{56}$/;

export const CURSOR_FORM = { minLength: 56, maxLength: 56, pattern: CURSOR.source };

/** The range that both PostgreSQL and Date support: from Julian day 0 to the year 275760. */
const FIRST_TIMESTAMP_MS = -210_866_803_200_000;
const LAST_TIMESTAMP_MS = 8_640_000_000_000_000;

/**
 * The cursor of the users after `position`: 8 bytes of `created_at`, 16 of `id`, 18 of a digest of these and the
 * selection, which detects mistakes (README.md).
 */
export function cursorAfter({ created_at, id }: Position, selection: Selection): string {
  const position = Buffer.alloc(POSITION_BYTES);
  position.writeBigInt64BE(BigInt(created_at));
  position.write(id.replaceAll('-', ''), 8, 'hex');
  return Buffer.concat([position, digestOf(position, selection)]).toString('base64url');
}

export function isCursor(text: string): boolean {
  return CURSOR.test(text);
}

/** The position in a cursor; undefined if the text is not a cursor, or belongs to another selection. */
export function parseCursor(cursor: string, selection: Selection): Position | undefined {
  if (!isCursor(cursor)) return undefined;
  const bytes = Buffer.from(cursor, 'base64url');
  const position = bytes.subarray(0, POSITION_BYTES);
  if (!digestOf(position, selection).equals(bytes.subarray(POSITION_BYTES))) return undefined;
  const created_at = Number(position.readBigInt64BE());
  if (created_at < FIRST_TIMESTAMP_MS || created_at > LAST_TIMESTAMP_MS) return undefined;
  return { created_at, id: position.toString('hex', 8) };
}

function digestOf(position: Buffer, selection: Selection): Buffer {
  const values = FILTERS.map((name) => selection[name]);
  const added = ADDED_FILTERS.map((name) => selection[name]).filter((value) => value !== undefined);
  // As JSON, two different selections have different texts.
  const text = JSON.stringify([selection.sort, ...values, ...added]);
  return hash('sha256', Buffer.concat([position, Buffer.from(text)]), 'buffer').subarray(0, DIGEST_BYTES);
}
