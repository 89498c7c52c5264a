import type { EventLog } from './event-log.ts';
import { redactedCause } from './redaction.ts';

/** The failures of an activity that is repeated. */
export type FailureLog = {
  /**
   * @returns whether the failure was logged
   */
  failed(cause: unknown): boolean;
  succeeded(): void;
};

/** Logs `event` at the first failure in a row, and whenever the cause differs from the previous one. */
export function createFailureLog(log: EventLog, event: string): FailureLog {
  let previous: string | undefined;
  return {
    failed(thrown) {
      const cause = redactedCause(thrown);
      const current = JSON.stringify({ cause }, (member, value) => (member === 'stack' ? undefined : value));
      if (current === previous) return false;
      previous = current;
      log.warning(event, { cause });
      return true;
    },
    succeeded() {
      previous = undefined;
    },
  };
}
