import { interruptingChanges } from '../changes/expiry.ts';
import type { Engine } from '../database/engines.ts';
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
  readonly engine: Engine;
};

/** In milliseconds: how often it is noted at most. */
const NOTED_EVERY = 1000;

/**
 * The writes of an instance that records no changes: before the first one, and again while they go on, it is noted that
 * changes are missing, so that no reader takes the feed for whole. Once would not do: an instance beside it that records
 * changes takes the note away and goes on.
 */
export function unrecordedWrites(statements: Pick<Statements, 'run'>): Pick<Statements, 'run'> {
  const interruptChanges = interruptingChanges(statements);
  let notedAt = Number.NEGATIVE_INFINITY;
  return {
    async run(statement) {
      const now = performance.now();
      if (now - notedAt > NOTED_EVERY) {
        await interruptChanges();
        notedAt = now;
      }
      return statements.run(statement);
    },
  };
}
