import { Problem, unavailable } from '../http/problem.ts';
import type { EventLog } from '../observability/event-log.ts';
import type { Settings } from '../settings/settings.ts';
import { isMissingTable } from './faults.ts';
import { Hosts } from './hosts/hosts.ts';
import { SELECT_MIGRATION } from './sender.ts';
import { SessionExecutor } from './wire/session-executor.ts';

/** Time limit of a check, in seconds. */
const TIME_LIMIT = 0.95;

/**
 * Whether the database is connected and has the tables that this version needs: its latest migration is recorded. It asks
 * over a session of its own, which no load on the other sessions delays, one question at a time.
 */
export class Readiness {
  readonly #executor: SessionExecutor;
  readonly #latestMigration: string;
  #asking: Promise<void> | undefined;
  #hasShutdownBegun = false;

  /** Connects when it is first asked: over the hosts of a database, or over hosts of its own with this log. */
  constructor(settings: Settings['postgres'], latestMigration: string, hostsOrLog: Hosts | EventLog) {
    const hosts = hostsOrLog instanceof Hosts ? hostsOrLog : new Hosts(settings, hostsOrLog);
    const limits = { ...settings, poolTimeout: TIME_LIMIT, statementTimeout: TIME_LIMIT };
    this.#executor = new SessionExecutor(limits, hosts, { maxSessions: 1, depth: 1 });
    this.#latestMigration = latestMigration;
  }

  /** @throws {Problem} service_unavailable_error, within a second */
  check(): Promise<void> {
    if (this.#hasShutdownBegun) return Promise.reject(unavailable('the shutdown has begun'));
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Makes every later check fail. */
  beginShutdown(): void {
    this.#hasShutdownBegun = true;
  }

  close(): void {
    this.#executor.cancel();
  }

  /** A session that takes longer to open than the time limit of a check is used by the next check. */
  async #ask(): Promise<void> {
    const deadline = performance.now() + TIME_LIMIT * 1000;
    const recorded = await this.#executor
      .send(SELECT_MIGRATION, [this.#latestMigration], deadline)
      .catch((fault) => {
        if (isMissingTable(fault)) return [];
        throw notReady(performance.now() < deadline ? fault : new Error('PostgreSQL did not answer in time'));
      });
    // Before the first migration, the record of migrations does not exist either.
    if (recorded.length === 0) throw unavailable('the migrations have not run yet');
  }
}

function notReady(fault: unknown): Problem {
  const cause = fault instanceof Problem ? (fault.cause ?? fault) : fault;
  return unavailable(`not ready: ${cause instanceof Error ? cause.message : cause}`, cause);
}
