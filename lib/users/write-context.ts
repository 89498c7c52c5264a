import type { CarryOutOnce } from '../idempotency/carry-out-once.ts';
import type { Engine } from '../postgres/engines.ts';
import type { Statements } from '../postgres/statements.ts';

/** The context of the statements that write users. */
export type WriteContext = {
  readonly statements: Pick<Statements, 'run'>;
  readonly carryOutOnce: CarryOutOnce;
  readonly engine: Engine;
};
