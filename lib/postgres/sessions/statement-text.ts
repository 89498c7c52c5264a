import { createHash } from 'node:crypto';

/** 30 bits: two of a hundred statements have the same name with a chance of 5 in a million. Each use sends them. */
const NAME_CHARACTERS = 5;

/**
 * Statements share sessions, except those of the kind `own-session`, which may take long or wait for locks. One statement
 * carries out many of the batched kinds. A `list` is a short read of many rows. No load delays `readiness`.
 */
export type StatementKind = 'batched-read' | 'batched-write' | 'list' | 'own-session' | 'readiness';

/** A statement as it was written. There is one object for each. */
export type StatementText = {
  readonly sql: string;
  readonly name: string;
  /** The operation and the table: `db.query.summary` of its span. */
  readonly summary: string;
  readonly kind: StatementKind;
  /** Whether it writes nothing. */
  readonly isRead: boolean;
  /** Whether the result is in binary and its rows stay as they came: each is a `ReceivedRow`. */
  readonly isBinary?: boolean;
  /** The place of the key among its values, if a batch carries it out. Rows are handed back by it. */
  readonly keyAt?: number;
  /** Whether its waits for locks end before its deadline, so that PostgreSQL reports what it waited for. */
  readonly limitsLockWaits?: boolean;
};

/** The name on all sessions is a digest of the text, so that no session knows another statement by it, even behind a pooler. */
export function nameStatement(sql: string): Pick<StatementText, 'sql' | 'name'> {
  return { sql, name: createHash('sha256').update(sql).digest('base64url').slice(0, NAME_CHARACTERS) };
}
