import type { EventLog } from './event-log.ts';
import { redactedCause } from './redaction.ts';

/** The failures of something that is tried again and again. */
export type FailureLog = {
  /** @returns whether it was logged */
  failed(cause: unknown): boolean;
  succeeded(): void;
};

/** Logs `event` at the first failure in a row, and whenever the cause is another than that of the failure before. */
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
