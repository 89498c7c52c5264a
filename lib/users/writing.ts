import type { Engine } from '../database/engines.ts';
import type { Statements } from '../database/statements.ts';
import type { CarryOutOnce } from '../idempotency/carry-out-once.ts';

/** What the statements that write users have in common. */
export type Writing = {
  readonly statements: Pick<Statements, 'run'>;
  readonly carryOutOnce: CarryOutOnce;
  readonly engine: Engine;
};
