import { interruptingChanges } from '../changes/retention.ts';
import type { Statements } from '../database/statements.ts';
import type { CarryOutOnce } from '../idempotency/carry-out-once.ts';

/** What the statements that write users have in common. */
export type Writing = {
  /** For those that write. */
  readonly writes: Pick<Statements, 'run'>;
  /** For those that only read. */
  readonly reads: Pick<Statements, 'run'>;
  /** Whether each write records its change. */
  readonly recordsChanges: boolean;
  readonly carryOutOnce: CarryOutOnce;
};

/**
 * The writes of an instance that records no changes: before its first one it is noted that changes are missing from then
 * on, so that no reader takes the feed for whole.
 */
export function unrecordedWrites(statements: Pick<Statements, 'run'>): Pick<Statements, 'run'> {
  const interruptChanges = interruptingChanges(statements);
  let isNoted = false;
  return {
    async run(statement) {
      if (!isNoted) await interruptChanges();
      isNoted = true;
      return statements.run(statement);
    },
  };
}
