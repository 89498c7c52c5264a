import { Problem, unavailable } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { isMissingTable } from './faults.ts';
import { clientConfig } from './hosts/connection-config.ts';
import { Hosts } from './hosts/hosts.ts';
import { SELECT_MIGRATION } from './sender.ts';
import { SessionExecutor } from './wire/session-executor.ts';

/** Whether the database is connected and has the tables that this version needs. */
export type Readiness = {
  /** @throws {Problem} service_unavailable_error, within a second */
  check(): Promise<void>;
  close(): Promise<void>;
};

const TIME_LIMIT_MS = 950;

/**
 * Asks over a session of its own, which no load on the other sessions delays, one question at a time. The schema has the
 * tables that this version needs when its latest migration is recorded.
 */
class ReadinessCheck implements Readiness {
  readonly #executor: SessionExecutor;
  readonly #latestMigration: string;
  #asking: Promise<void> | undefined;

  constructor(settings: Settings['postgres'], latestMigration: string, hosts: Hosts) {
    this.#latestMigration = latestMigration;
    this.#executor = new SessionExecutor(clientConfig(settings), {
      hosts,
      watch: () => {},
      maxSessions: 1,
      depth: 1,
      areNamed: false,
      maxWaiting: 1,
      poolTimeLimit: TIME_LIMIT_MS,
      maxSilence: TIME_LIMIT_MS,
    });
  }

  check(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async close(): Promise<void> {
    this.#executor.cancel();
  }

  /** A session that takes longer to open than the time limit of a check is used by the next check. */
  async #ask(): Promise<void> {
    const deadline = performance.now() + TIME_LIMIT_MS;
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

/** Creates the check of one instance. It connects when it is first used. */
export function createReadiness(
  settings: Settings['postgres'],
  latestMigration: string,
  hosts = new Hosts(settings),
): Readiness {
  return new ReadinessCheck(settings, latestMigration, hosts);
}

function notReady(fault: unknown): Problem {
  const cause = fault instanceof Problem ? (fault.cause ?? fault) : fault;
  return unavailable(`not ready: ${cause instanceof Error ? cause.message : cause}`, cause);
}
