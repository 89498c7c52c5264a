import type { CarryOutOnce } from '../idempotency/carry-out-once.ts';
import type { Statements } from '../postgres/index.ts';

/** The context of the statements that write users. */
export type WriteContext = {
  readonly statements: Statements;
  readonly carryOutOnce: CarryOutOnce;
};
