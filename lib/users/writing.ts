import type { Engine } from '../database/engines.ts';
import type { Statements } from '../database/statements.ts';
import type { CarryOutOnce } from '../idempotency/carry-out-once.ts';

/** The context of the statements that write users. */
export type Writing = {
  readonly statements: Pick<Statements, 'run'>;
  readonly carryOutOnce: CarryOutOnce;
  readonly engine: Engine;
};
