import type { EventLog } from './event-log.ts';
import { redactedCause } from './redaction.ts';

/**
 * The log of an activity that is repeated: an event at the first failure in a row, and whenever the cause differs from
 * the previous one.
 */
export class FailureLog {
  readonly #log: EventLog;
  readonly #event: string;
  #previous: string | undefined;

  constructor(log: EventLog, event: string) {
    this.#log = log;
    this.#event = event;
  }

  /** @returns whether the failure was logged */
  onFailure(thrown: unknown): boolean {
    const cause = redactedCause(thrown);
    const current = JSON.stringify({ cause }, (member, value) => (member === 'stack' ? undefined : value));
    if (current === this.#previous) return false;
    this.#previous = current;
    this.#log.warning(this.#event, { cause });
    return true;
  }

  onSuccess(): void {
    this.#previous = undefined;
  }
}
