import type { Statements } from '../database/statements.ts';
import type { CarryOutOnce } from '../idempotency/carry-out-once.ts';

/** What the statements that write users have in common. */
export type Writing = {
  readonly statements: Statements;
  /** Whether each write records its change. */
  readonly recordsChanges: boolean;
  readonly carryOutOnce: CarryOutOnce;
};
